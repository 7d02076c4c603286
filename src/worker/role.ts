import type { Context } from '../agent.ts'

/**
 * Whether this process is a worker. On globalThis, because the user's module may bring its own copy of this package (bundled,
 * or CommonJS beside ESM), and that copy must know it too.
 */
interface Role {
  /** The task whose code is running, in this async context. */
  current: () => Context | undefined
}

const ROLE = Symbol.for('manyworlds.worker')
const PARKED = Symbol.for('manyworlds.parked')
const INLINE = Symbol.for('manyworlds.inline')
const holder = globalThis as unknown as {
  [ROLE]?: Role
  [PARKED]?: (call: string) => void
  [INLINE]?: Set<Role>
}

/** Set by the engine in a worker's environment. The worker removes it, so that programs started by tasks do not see it. */
export const WORKER_VARIABLE = 'MANYWORLDS_WORKER'

/** The file descriptors of frames, watchdog and (optional) side thread. Default: `3,4`. */
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

/** The driver runs tasks in its own process too, until the returned function is called. It stays a driver. */
export function runTasksHere(role: Role): () => void {
  holder[INLINE] ??= new Set()
  holder[INLINE].add(role)
  return () => holder[INLINE]!.delete(role)
}

/** The context of the running task, if any. */
export const currentTask = (): Context | undefined => holder[ROLE]?.current() ?? inlineTask()

function inlineTask(): Context | undefined {
  if (holder[INLINE] === undefined) return undefined
  for (const { current } of holder[INLINE]) {
    const task = current()
    if (task) return task
  }
  return undefined
}

/** Whether a `Runners` call belongs to the driver's script, imported by this worker, and so must do nothing. */
export const mustPark = (): boolean => inWorker() && currentTask() === undefined

/**
 * Parks a script at `call`: returns a promise that never settles, so that code below an awaited run is not executed in a
 * worker. Throws RUNNERS_IN_WORKER if the call cannot be the script's own first run.
 */
export function park(call: string): Promise<never> {
  holder[PARKED]?.(call)
  return new Promise<never>(() => {})
}

/** The same for synchronous calls: throws, and the loader treats that as parking. */
export function parkNow(call: string): never {
  holder[PARKED]?.(call)
  throw new Parked(`${call} is for the driver only: a worker imports this script for its agents`)
}

/** If `listener` throws, the caller gets the error. */
export function onParked(listener: (call: string) => void): void {
  holder[PARKED] = listener
}

export class Parked extends Error {
  override readonly name = 'Parked'
}
