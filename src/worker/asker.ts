import type { Asks } from './asks.ts'
import type { TaskContext } from './context.ts'

/** On whose behalf this worker asks the driver: a task that runs, or one that waits until its agent is set up. */
export interface Asker {
  readonly lease: number
  /** Nobody listens to it any more; and what it hears if it asks all the same. */
  readonly settled: boolean
  readonly whyOver: unknown
  /** Aborted when it is to give up. */
  readonly signal: AbortSignal
  /** What it has asked for, once it has. */
  asks: Asks | undefined
  /** The blobs it has asked for, by the names under which it did. */
  blobs: Map<string, Promise<Uint8Array>> | undefined
  /** The task, if it runs. Others have neither a clock nor a slot, and so never stop the one or give the other. */
  readonly running: TaskContext | undefined
}
