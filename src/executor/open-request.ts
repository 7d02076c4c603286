import { type Ask, STREAM_PARTS } from '../protocol/messages.ts'
import type { AnswerKey } from './answers.ts'
import type { Lease } from './entry.ts'
import type { Service, ServiceCall } from './service.ts'
import type { Turns } from './turns.ts'
import type { Speaker } from './worker-handle.ts'

/** A request that is not answered in full. */
export class OpenRequest implements ServiceCall {
  readonly id: number
  readonly lease: Lease
  /** Who asked, and is answered. */
  readonly speaker: Speaker
  readonly ask: Ask
  readonly service: Service
  readonly turns: Turns<Lease, OpenRequest>
  #ending: AbortController | undefined
  #ended = false
  /** Under which its answer is kept, if it is. */
  key: AnswerKey | undefined
  served = false
  /** It waits for its turn, and its lease counts it. */
  queued = false
  /** Parts that may be sent. */
  #credit = STREAM_PARTS
  #credited = () => {}

  constructor(lease: Lease, ask: Ask, { service, turns }: Served, speaker: Speaker) {
    this.speaker = speaker
    this.id = ask.request
    this.lease = lease
    this.ask = ask
    this.service = service
    this.turns = turns
  }

  get by(): Lease {
    return this.lease
  }

  get body(): unknown {
    return this.ask.body
  }

  /** Made when it is asked for: most services do not, and it costs more than the rest of this. */
  get signal(): AbortSignal {
    if (this.#ending === undefined) {
      this.#ending = new AbortController()
      if (this.#ended) this.#ending.abort()
    }
    return this.#ending.signal
  }

  get isOpen(): boolean {
    return this.lease.asks?.open.get(this.id) === this
  }

  end(): void {
    this.#ended = true
    this.#ending?.abort()
    this.#credited()
  }

  more(parts: number): void {
    this.#credit = Math.min(STREAM_PARTS, this.#credit + parts)
    this.#credited()
  }

  /** Waits until a part may be sent, or nobody wants it any more. */
  async room(): Promise<void> {
    while (this.#credit === 0 && this.isOpen)
      await new Promise<void>((resolve) => {
        this.#credited = resolve
      })
    this.#credit--
  }
}

/** A service of a run, with those who wait for it. */
export interface Served {
  readonly service: Service
  readonly turns: Turns<Lease, OpenRequest>
}
