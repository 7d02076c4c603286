import type { Context } from '../agent.ts'

/**
 * Which side of the process boundary this is. On globalThis, because the user's module may bring its own copy of this
 * package (bundled, or CommonJS beside ESM), and that copy must know it too.
 */
interface Role {
  /** The task whose code is running now, in this asynchronous context. */
  current: () => Context | undefined
}

const ROLE = Symbol.for('manyworlds.worker')
const PARKED = Symbol.for('manyworlds.parked')
const holder = globalThis as unknown as { [ROLE]?: Role; [PARKED]?: (call: string) => void }

/** Set by the engine in a worker's environment; the worker removes it, so that programs that a task starts do not see it. */
export const WORKER_VARIABLE = 'MANYWORLDS_WORKER'

/** The descriptors of frames, of the watchdog and of the side thread, which may be left out. `3,4` if it is not set. */
export const FDS_VARIABLE = 'MANYWORLDS_FDS'

/** The folder in which a worker finds blobs, each as a file named by its hash. */
export const BLOBS_VARIABLE = 'MANYWORLDS_BLOBS'

/** The driver's command line, as JSON. */
export const ARGV_VARIABLE = 'MANYWORLDS_ARGV'

export function becomeWorker(role: Role): void {
  holder[ROLE] = role
  delete process.env[WORKER_VARIABLE]
}

const inWorker = () => holder[ROLE] !== undefined || process.env[WORKER_VARIABLE] !== undefined

/** True in a worker process: guards what a script should do only once, such as printing a banner. */
export const isWorker: boolean = inWorker()

/** The context of the task that is running here, if one is. */
export const currentTask = (): Context | undefined => holder[ROLE]?.current()

/** Whether a `Runners` call belongs to the driver's script that this worker has imported, and so must do nothing. */
export const mustPark = (): boolean => inWorker() && currentTask() === undefined

/**
 * Ends the reading of a script at `call`: never settles, so that none of the code below an awaited run is executed in a
 * worker. Throws RUNNERS_IN_WORKER where the call cannot be the script's own first run.
 */
export function park(call: string): Promise<never> {
  holder[PARKED]?.(call)
  return new Promise<never>(() => {})
}

/** The same for calls that cannot wait: the loader takes what they throw for a park. */
export function parkNow(call: string): never {
  holder[PARKED]?.(call)
  throw new Parked(`${call} is the driver’s: a worker only reads this script for its agents`)
}

/** `listener` may throw: then the caller gets that. */
export function onParked(listener: (call: string) => void): void {
  holder[PARKED] = listener
}

export class Parked extends Error {
  override readonly name = 'Parked'
}
