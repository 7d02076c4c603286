import { type Ask, STREAM_PARTS } from '../protocol/messages.ts'
import { type AnswerKey, Answers } from './answers.ts'
import type { Lease } from './entry.ts'
import type { Service, ServiceCall } from './service.ts'
import type { Turns } from './turns.ts'
import type { Speaker } from './worker-handle.ts'

/** A request without its last answer. */
export class OpenRequest implements ServiceCall {
  readonly id: number
  readonly lease: Lease
  /** The voice of the worker that asked, and gets the answer. */
  readonly speaker: Speaker
  readonly ask: Ask
  readonly service: Service
  readonly turns: Turns<Lease, OpenRequest>
  #ending: AbortController | undefined
  #ended = false
  #begun = false
  /** Under which its answer is stored, if it is. */
  key: AnswerKey | undefined
  served = false
  /** It waits for its turn, and is counted by its lease. */
  queued = false
  /** The clock of its task stands because of it. */
  stands: boolean
  /** How many parts may be sent before the task says that it took some. */
  #credit = STREAM_PARTS
  #credited = () => {}

  readonly #onWaiting: (request: OpenRequest, isWaiting: boolean) => void

  constructor(lease: Lease, ask: Ask, { service, turns, onWaiting }: Served, speaker: Speaker) {
    this.#onWaiting = onWaiting
    this.stands = ask.clock === 'stands'
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

  get occurrence(): number {
    return this.key?.occurrence ?? 0
  }

  get body(): unknown {
    return this.ask.body
  }

  /** Made when a service reads it: most do not, and a controller costs more than the rest of this object. */
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

  waiting(isWaiting: boolean): void {
    this.#onWaiting(this, isWaiting)
  }

  begins(): void {
    if (this.#begun || !this.isOpen || this.key === undefined || !this.service.costs) return
    this.#begun = true
    Answers.of(this.lease).begin(this.lease, this.ask.service, this.key)
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

  /** Waits until a part may be sent, or the request is over. */
  async room(): Promise<void> {
    while (this.#credit === 0 && this.isOpen)
      await new Promise<void>((resolve) => {
        this.#credited = resolve
      })
    this.#credit--
  }
}

/** A service of a run, and whose turn it is. */
export interface Served {
  readonly service: Service
  readonly turns: Turns<Lease, OpenRequest>
  /** The service waits for something while it serves the request, or has it. */
  onWaiting(request: OpenRequest, isWaiting: boolean): void
}
