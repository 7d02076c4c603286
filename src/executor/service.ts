import type { Packed } from '../protocol/messages.ts'
import type { Lease } from './entry.ts'

/** What a task asks for. */
export interface ServiceCall {
  readonly lease: Lease
  readonly body: unknown
  /** Aborted when nobody waits for the answer any more. */
  readonly signal: AbortSignal
}

/** Something that tasks can ask the driver for, by its name. */
export interface Service {
  /** Its answers count: a task that has asked runs in one place only. */
  readonly once: boolean
  /** Its answers are on disk before a task gets them, and are given again to a rerun of the same attempt. */
  readonly durable: boolean
  /** Requests that it deals with at the same time; tasks take turns. */
  readonly atOnce: number
  /** Whether a task may have as many requests open as it likes: the service has a limit of its own. */
  readonly unlimited: boolean
  /** Throws if no worker of ours would ask that: it costs the worker. */
  check(body: unknown): void
  /** What it throws, or rejects with, is its answer too. */
  ask(call: ServiceCall): Promise<Packed> | AsyncIterable<Packed>
}

export const isStream = (value: unknown): value is AsyncIterable<Packed> =>
  typeof value === 'object' && value !== null && Symbol.asyncIterator in value
