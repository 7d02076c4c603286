import type { Packed } from '../protocol/messages.ts'
import type { Lease } from './task-entry.ts'

/** A request of a task. */
export interface ServiceCall {
  readonly lease: Lease
  readonly body: unknown
  /** How often this attempt made the same request before; 0 unless answers are stored. */
  readonly occurrence: number
  /** Aborted when the answer is no longer needed. */
  readonly signal: AbortSignal
  /**
   * The service begins (true) or stops (false) waiting for something that tasks share, such as a permit. Meanwhile the task's
   * clock is stopped, and its worker gets no more tasks if many of its tasks wait like this.
   */
  waiting(isWaiting: boolean): void
  /**
   * The part that costs money begins when this resolves: it is on disk then. If the answer is lost in a crash, the call is
   * repeated and counted as such.
   */
  begins(): Promise<void>
}

/** Something that the driver does for tasks, which they request by name. */
export interface Service {
  /** A task that has used this service must not run twice at the same time (`speculate`). */
  readonly once: boolean
  /** Its answers are stored before tasks get them. A rerun of the same attempt gets them again. */
  readonly durable: boolean
  /** Each call costs money once it `begins`: repeated calls are counted. */
  readonly costs?: boolean
  /** How many requests are served at the same time; tasks take turns. */
  readonly atOnce: number
  /** Its requests do not count for the limit of open requests per task; it has a limit of its own. */
  readonly unlimited: boolean
  /** Throws if the body is malformed. A worker that sends such a body is ended. */
  check(body: unknown): void
  /** If it throws or rejects, the task gets the error. */
  ask(call: ServiceCall): Promise<Packed> | AsyncIterable<Packed>
}

export const isStream = (value: unknown): value is AsyncIterable<Packed> =>
  typeof value === 'object' && value !== null && Symbol.asyncIterator in value
