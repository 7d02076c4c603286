import type { Packed } from '../protocol/messages.ts'
import type { Lease } from './entry.ts'

/** What a task asks for. */
export interface ServiceCall {
  readonly lease: Lease
  readonly body: unknown
  /** How often its attempt has asked the same before; 0 unless answers are stored. */
  readonly occurrence: number
  /** Aborted when nobody waits for the answer any more. */
  readonly signal: AbortSignal
  /**
   * The service waits for its turn at something that tasks share, or has it. Meanwhile the task's clock stands, and its worker is
   * given no more tasks if many of its tasks wait like this.
   */
  waiting(isWaiting: boolean): void
  /** What costs is done from now on. If its answer is lost with a process, it will be repeated, and counted. */
  begins(): void
}

/** Something that tasks can ask the driver for, by its name. */
export interface Service {
  /** A task that has asked this service must not run a second time at the same moment (`speculate`). */
  readonly once: boolean
  /** Its answers are stored before tasks get them. A rerun of the same attempt gets them again. */
  readonly durable: boolean
  /** Each call costs, once it `begins`: those that have to be repeated are counted. */
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
