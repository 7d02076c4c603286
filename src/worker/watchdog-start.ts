import { Worker } from 'node:worker_threads'
import { BLAME } from './watchdog.ts'

/**
 * Starts the watchdog thread. It shares one number with us, the nearest deadline of a running task (epoch ms), and owns
 * fd 4: see `watchdog.ts`.
 */
export function startWatchdog(blame: () => unknown, ready: () => void): Float64Array {
  const shared = new Float64Array(new SharedArrayBuffer(8))
  shared[0] = Number.POSITIVE_INFINITY
  ;(globalThis as Record<symbol, unknown>)[Symbol.for(BLAME)] = () => JSON.stringify(blame() ?? null)
  const file = new URL(`./watchdog${import.meta.url.endsWith('.ts') ? '.ts' : '.js'}`, import.meta.url)
  const thread = new Worker(file, {
    workerData: shared,
    // None of the user's flags, loaders or variables: this thread must come up whatever they do.
    execArgv: [],
    env: {},
    stdin: false,
    stdout: false,
    stderr: false,
    resourceLimits: { maxOldGenerationSizeMb: 16, maxYoungGenerationSizeMb: 4 },
  })
  thread.once('message', ready)
  thread.unref()
  return shared
}
