import type { Asks } from './asks.ts'
import type { TaskContext } from './context.ts'

/** The task on whose behalf this worker makes a request: one that runs, or one that waits for its agent's `setup`. */
export interface Asker {
  readonly lease: number
  /** It is over; and the error that further requests get. */
  readonly settled: boolean
  readonly whyOver: unknown
  /** Aborted when it is cancelled. */
  readonly signal: AbortSignal
  /** Its requests, if it has made any. */
  asks: Asks | undefined
  /** The blobs it has asked for, by the name it used. */
  blobs: Map<string, Promise<Uint8Array>> | undefined
  /** The task, if it runs. Only running tasks have a clock to stop and a slot to release. */
  readonly running: TaskContext | undefined
}
