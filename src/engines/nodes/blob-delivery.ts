import { showBlob } from '../../blobs.ts'
import type { DriverToHost, HostToDriver } from '../../network/host-messages.ts'
import { BLOB_STREAM, BLOB_STREAM_BYTES, CHUNK_BYTES } from '../../network/limits.ts'
import type { Mux } from '../../network/mux.ts'
import type { BlobContent } from '../engine.ts'

export type BlobAnswer = Extract<HostToDriver, { type: 'blob-have' | 'blob-send' | 'blob-refuse' }>

interface Delivery {
  readonly content: BlobContent
  readonly done: PromiseWithResolvers<void>
  /** The host has asked for it. `sent`: how many bytes it was sent. */
  sending: boolean
  sent: number
  /** The host has refused it, perhaps halfway. */
  refused: boolean
  /** It is no longer needed. */
  dropped: boolean
}

export interface DeliveryHooks {
  say(message: DriverToHost): void
  /** The host must answer after it was sent these bytes. `paid`: it has answered. */
  owes(what: string, bytes: number): void
  paid(): void
  /** The host broke the protocol. */
  refuse(what: string): void
}

/** Sends blobs to one host: each once, one after the other, in pieces that give way to all other messages. */
export class BlobDelivery {
  readonly #mux: Mux
  readonly #hooks: DeliveryHooks
  /** Blobs that the host has or will get. */
  readonly #live = new Map<string, Delivery>()
  /** Blobs on their way; the first is the one offered to the host. */
  readonly #queue: Delivery[] = []
  #ended: Error | undefined

  constructor(mux: Mux, hooks: DeliveryHooks) {
    this.#mux = mux
    this.#hooks = hooks
    mux.open(BLOB_STREAM, {
      frame: () => true,
      drained: () => this.#send(),
      // The host sends nothing on this stream.
      maxBytes: () => 0,
      credit: BLOB_STREAM_BYTES,
    })
  }

  /** Resolves when the host has it; rejects if the host refuses it or is gone. */
  put(content: BlobContent): Promise<void> {
    if (this.#ended) return Promise.reject(this.#ended)
    let delivery = this.#live.get(content.sha256)
    if (delivery === undefined) {
      const flags = { sending: false, sent: 0, refused: false, dropped: false }
      delivery = { content, done: Promise.withResolvers(), ...flags }
      delivery.done.promise.catch(() => {})
      this.#live.set(content.sha256, delivery)
      if (this.#queue.push(delivery) === 1) this.#offer()
    }
    return delivery.done.promise
  }

  drop(sha256: string): void {
    const delivery = this.#live.get(sha256)
    if (delivery === undefined) return
    this.#live.delete(sha256)
    // If it is being sent, the host is told afterwards.
    if (this.#queue.includes(delivery)) delivery.dropped = true
    else if (!delivery.refused) this.#hooks.say({ type: 'blob-drop', sha256 })
  }

  on(answer: BlobAnswer): void {
    const [first] = this.#queue
    if (first === undefined || first.content.sha256 !== answer.sha256 || first.refused)
      return this.#hooks.refuse('an answer about a blob that was never offered')
    const { bytes, sha256 } = first.content
    switch (answer.type) {
      case 'blob-have':
        if (first.sending && first.sent < bytes.byteLength)
          return this.#hooks.refuse('a confirmation of a blob that was not sent in full')
        first.done.resolve()
        return this.#next(first)
      case 'blob-send':
        if (first.sending) return this.#hooks.refuse('a second request for a blob')
        first.sending = true
        this.#hooks.owes('word about a blob that it was sent', bytes.byteLength)
        return this.#send()
      case 'blob-refuse':
        first.refused = true
        first.done.reject(new Error(`it refused ${showBlob(sha256, bytes.byteLength)}: ${answer.reason}`))
        if (!first.sending || first.sent === bytes.byteLength) return this.#next(first)
        // Pieces that are already on their way are ignored by the host.
        return
      default:
        answer satisfies never
    }
  }

  /** The host is gone. */
  end(error: Error): void {
    this.#ended = error
    for (const { done } of this.#queue.splice(0)) done.reject(error)
    this.#live.clear()
  }

  #offer(): void {
    const [first] = this.#queue
    if (first === undefined) return
    const { sha256, bytes } = first.content
    if (first.dropped) {
      first.done.resolve()
      this.#queue.shift()
      return this.#offer()
    }
    this.#hooks.owes('answer to an offer of a blob', 0)
    this.#hooks.say({ type: 'blob-offer', sha256, bytes: bytes.byteLength })
  }

  /** Sends as much as the host's credit allows, so that the blob is not in memory twice. */
  #send(): void {
    const [first] = this.#queue
    if (!first?.sending) return
    const { bytes } = first.content
    while (first.sent < bytes.byteLength) {
      const piece = bytes.subarray(first.sent, first.sent + CHUNK_BYTES)
      first.sent += piece.byteLength
      if (!this.#mux.send(BLOB_STREAM, piece)) return
    }
    if (first.refused) this.#next(first)
  }

  #next(done: Delivery): void {
    this.#hooks.paid()
    this.#queue.shift()
    const { sha256 } = done.content
    if (done.dropped && !done.refused) this.#hooks.say({ type: 'blob-drop', sha256 })
    // It may be tried again: the disk may have room later.
    if (done.refused && this.#live.get(sha256) === done) this.#live.delete(sha256)
    this.#offer()
  }
}
