import { type Ask, STREAM_PARTS } from '../protocol/messages.ts'
import { type AnswerKey, Answers } from './answers.ts'
import type { Service, ServiceCall } from './service.ts'
import type { Lease } from './task-entry.ts'
import type { Turns } from './turns.ts'
import type { Speaker } from './worker-handle.ts'

/** A request whose last answer has not been sent. */
export class OpenRequest implements ServiceCall {
  readonly id: number
  readonly lease: Lease
  /** The channel that the request came from; the answer goes there. */
  readonly speaker: Speaker
  readonly ask: Ask
  readonly service: Service
  readonly turns: Turns<Lease, OpenRequest>
  #ending: AbortController | undefined
  #ended = false
  #begun: Promise<void> | undefined
  #noted = () => {}
  /** The key under which its answer is stored, if it is durable. */
  key: AnswerKey | undefined
  served = false
  /** It waits for its turn; its lease counts it. */
  queued = false
  /** It stops the clock of its task. */
  stands: boolean
  /** How many more parts may be sent before the task confirms some. */
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

  /** Made on first use: most services don't use it, and a controller costs more than the rest of this object. */
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

  begins(): Promise<void> {
    const { lease, ask, key, service } = this
    this.#begun ??= new Promise((resolve) => {
      if (!this.isOpen || key === undefined || !service.costs) return resolve()
      // A request that ends does not wait for the disk, which may be broken: its permit must be returned.
      this.#noted = resolve
      Answers.of(lease).begin(lease, ask.service, key, resolve)
    })
    return this.#begun
  }

  end(): void {
    this.#ended = true
    this.#noted()
    this.#ending?.abort()
    this.#credited()
  }

  more(parts: number): void {
    this.#credit = Math.min(STREAM_PARTS, this.#credit + parts)
    this.#credited()
  }

  /** Waits until a part may be sent or the request is over. */
  async room(): Promise<void> {
    while (this.#credit === 0 && this.isOpen)
      await new Promise<void>((resolve) => {
        this.#credited = resolve
      })
    this.#credit--
  }
}

/** A service of a run, and the turns of its requests. */
export interface Served {
  readonly service: Service
  readonly turns: Turns<Lease, OpenRequest>
  /** The service begins or stops waiting while it serves the request. */
  onWaiting(request: OpenRequest, isWaiting: boolean): void
}
