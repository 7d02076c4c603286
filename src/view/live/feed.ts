import type { LiveEvent } from '../api.ts'

/** An event, and the position after it, which a client that reconnects sends. */
export interface FeedEvent {
  readonly event: LiveEvent
  readonly id?: string
}

/** What is new for one client. */
export interface Feed {
  /** The events since the last call. */
  next(signal: AbortSignal): AsyncIterable<FeedEvent>
}
