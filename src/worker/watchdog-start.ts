import { Worker } from 'node:worker_threads'
import { BLAME } from './blame.ts'

interface Watchdog {
  /** The nearest deadline of a running task, epoch ms: memory that the thread reads. */
  readonly nearestDeadline: Float64Array
  /** Resolves when the thread watches. */
  readonly watching: Promise<void>
  /** Tells it how to find out whose code is running. */
  blameBy(find: () => unknown): void
}

/** Started by importing this module: the thread that `watchdog.ts` describes. */
export const watchdog: Watchdog = startWatchdog()

function startWatchdog(): Watchdog {
  const nearestDeadline = new Float64Array(new SharedArrayBuffer(8))
  nearestDeadline[0] = Number.POSITIVE_INFINITY
  const extension = import.meta.url.endsWith('.ts') ? '.ts' : '.js'
  const thread = new Worker(new URL(`./watchdog${extension}`, import.meta.url), {
    workerData: nearestDeadline,
    // None of the user's flags, loaders or variables: this thread must come up whatever they do.
    execArgv: [],
    env: {},
    resourceLimits: { maxOldGenerationSizeMb: 16, maxYoungGenerationSizeMb: 4 },
  })
  const watching = new Promise<void>((resolve) => thread.once('message', () => resolve()))
  thread.unref()
  return {
    nearestDeadline,
    watching,
    blameBy(find) {
      ;(globalThis as Record<symbol, unknown>)[Symbol.for(BLAME)] = () => JSON.stringify(find() ?? null)
    },
  }
}
