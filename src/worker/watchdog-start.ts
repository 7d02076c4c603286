import { extname } from 'node:path'
import { Worker } from 'node:worker_threads'
import { OWNER_VARIABLE } from '../owned-processes.ts'
import { FDS_VARIABLE } from './role.ts'
import { BLAME, SHARED, WATCHING } from './watchdog-contract.ts'

const [frames = 3, beats = 4, side] = (process.env[FDS_VARIABLE] ?? '3,4').split(',').map(Number)
delete process.env[FDS_VARIABLE]
/** The file descriptor of frames; the other one belongs to the watchdog. */
export const framesFd: number = frames
/** The file descriptor of the side thread; undefined: its frames go through the main one. */
export const sideFd: number | undefined = side
const watchdogFd = beats
const mark = process.env[OWNER_VARIABLE]
/** What marks processes of this worker's tasks. Undefined if an engine of another kind started it, perhaps in a task. */
export const ownMark: string | undefined = mark?.startsWith(`${process.ppid}-`) ? mark : undefined

interface Watchdog {
  /** Memory shared with the thread: see `SHARED`. */
  readonly shared: Float64Array
  /** Resolves when the thread has started. */
  readonly watching: Promise<void>
  /** Sets the function that tells whose code is running. */
  blameBy(find: () => unknown): void
}

/** Importing this module starts the thread of `watchdog.ts`. */
export const watchdog: Watchdog = startWatchdog()

function startWatchdog(): Watchdog {
  const shared = new Float64Array(new SharedArrayBuffer(SHARED.bytes))
  shared[SHARED.deadline] = Number.POSITIVE_INFINITY
  // `.ts` in this repository, `.js` in the package, `.mjs` if the worker's program was sent to another machine.
  const extension = extname(new URL(import.meta.url).pathname)
  const thread = new Worker(new URL(`./watchdog${extension}`, import.meta.url), {
    workerData: { shared, fd: watchdogFd, owner: ownMark },
    // Without the user's flags, loaders and variables: this thread must start whatever they do.
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
