import { extname } from 'node:path'
import { Worker } from 'node:worker_threads'
import { BLAME, WATCHING } from './blame.ts'
import { FDS_VARIABLE } from './role.ts'

const [frames = 3, beats = 4, side] = (process.env[FDS_VARIABLE] ?? '3,4').split(',').map(Number)
delete process.env[FDS_VARIABLE]
/** Frames come and go here; the other one belongs to the watchdog. */
export const framesFd: number = frames
/** Frames of the side thread; undefined: they go the same way as the others. */
export const sideFd: number | undefined = side
const watchdogFd = beats

interface Watchdog {
  /** Memory that the thread reads: the nearest deadline of a running task, epoch ms, and the number of running tasks. */
  readonly shared: Float64Array
  /** Resolves when the thread watches. */
  readonly watching: Promise<void>
  /** Tells it how to find out whose code is running. */
  blameBy(find: () => unknown): void
}

/** Started by importing this module: the thread that `watchdog.ts` describes. */
export const watchdog: Watchdog = startWatchdog()

function startWatchdog(): Watchdog {
  const shared = new Float64Array(new SharedArrayBuffer(16))
  shared[0] = Number.POSITIVE_INFINITY
  // `.ts` in this repository, `.js` in the package, `.mjs` where the worker's program was sent to another machine.
  const extension = extname(new URL(import.meta.url).pathname)
  const thread = new Worker(new URL(`./watchdog${extension}`, import.meta.url), {
    workerData: { shared, fd: watchdogFd },
    // None of the user's flags, loaders or variables: this thread must come up whatever they do.
    execArgv: [],
    env: {},
    resourceLimits: { maxOldGenerationSizeMb: 16, maxYoungGenerationSizeMb: 4 },
  })
  const watching = new Promise<void>((resolve) =>
    thread.on('message', (message) => {
      if (message === WATCHING) resolve()
    }),
  )
  thread.unref()
  return {
    shared,
    watching,
    blameBy(find) {
      ;(globalThis as Record<symbol, unknown>)[Symbol.for(BLAME)] = () => JSON.stringify(find() ?? null)
    },
  }
}
