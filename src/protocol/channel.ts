import { ManyworldsError } from '../errors.ts'
import { decode, encode } from './codec.ts'
import { MAX_VALUE_BYTES } from './pack.ts'

/** What carries frames: a worker's link in the driver, the socket to the driver in a worker. */
export interface Wire {
  /** False: the other end is slow, wait for drain. The frame is taken all the same. */
  send(frame: Uint8Array): boolean
  onDrain(listener: () => void): void
  onFrame(listener: (frame: Uint8Array) => void): void
  /** True while bytes wait in this process: what was sent would be lost with it. */
  holdsBytes?(): boolean
}

/** A message larger than this travels in fragments, and small messages pass it. */
export const BULK_BYTES = 256 * 1024
const FRAGMENT_BYTES = 64 * 1024
/** Bytes of one stream that may be under way before its receiver has said that it took some. */
const STREAM_CREDIT = 1024 * 1024
/** A receiver that holds this much of unfinished streams lets only the oldest go on. */
const REASSEMBLY_BYTES = 128 * 1024 * 1024
const MAX_MESSAGE_BYTES = MAX_VALUE_BYTES + 16 * 1024 * 1024

const TAG = { batch: 0, fragment: 1, credit: 2 } as const
type Fragment = [tag: 1, stream: number, last: boolean, bytes: Uint8Array]
type Credit = [tag: 2, stream: number, bytes: number]

interface Outgoing {
  readonly id: number
  readonly key: number
  bytes: Uint8Array
  sent: number
  credit: number
  /** Messages of the same key that came while this one was on its way; order within a key is kept. */
  readonly behind: [message: unknown, size: number][]
}

interface Incoming {
  readonly parts: Uint8Array[]
  size: number
  /** Bytes whose credit was held back. */
  owed: number
}

/**
 * Messages over a wire. Three lanes: control goes at once, ordinary messages wait while the wire is full, bulk goes in
 * fragments with credit per stream whenever nothing else wants to. Order is kept within the ordinary lane, and within a
 * key (a lease) also across lanes.
 */
export class Channel<Out extends { type: string }, In extends { type: string }> {
  readonly #wire: Wire
  readonly #receive: (message: In) => void
  readonly #broken: (error: ManyworldsError) => void
  #full = false
  #waiting: Out[] = []
  #riders: Out[] = []
  #nextStream = 1
  readonly #outgoing = new Map<number, Outgoing>()
  readonly #outgoingByKey = new Map<number, Outgoing>()
  readonly #incoming = new Map<number, Incoming>()
  #held = 0

  constructor(wire: Wire, receive: (message: In) => void, broken: (error: ManyworldsError) => void) {
    this.#wire = wire
    this.#receive = receive
    this.#broken = broken
    wire.onFrame((frame) => this.#onFrame(frame))
    wire.onDrain(() => {
      this.#full = false
      this.#pump()
    })
  }

  /** Sends ahead of everything that waits. */
  control(message: Out): void {
    this.#send([TAG.batch, message])
  }

  /** Sends with the next ordinary message, in the same frame and before it: what nobody needs any sooner. */
  ride(message: Out): void {
    this.#riders.push(message)
  }

  /** Sends in order. `size` is the rough size of its payload, `key` the lease it belongs to, if it is of one only. */
  post(message: Out, size = 0, key = 0): void {
    if (key !== 0 && this.#outgoingByKey.size > 0) {
      const stream = this.#outgoingByKey.get(key)
      if (stream) {
        stream.behind.push([message, size])
        return
      }
    }
    const riders = this.#riders
    if (riders.length > 0) this.#riders = []
    if (size > BULK_BYTES) {
      if (riders.length > 0) this.#post(riders)
      this.#openStream(message, key)
    } else if (riders.length > 0) this.#post([...riders, message])
    else if (this.#full) this.#waiting.push(message)
    else this.#send([TAG.batch, message])
  }

  #post(messages: Out[]): void {
    if (this.#full) this.#waiting.push(...messages)
    else this.#send([TAG.batch, ...messages])
  }

  /** True while something that was said has not left this process. */
  get holdsBytes(): boolean {
    return this.#full || (this.#wire.holdsBytes?.() ?? false)
  }

  #send(frame: unknown[]): void {
    if (!this.#wire.send(encode(frame))) this.#full = true
  }

  #openStream(message: unknown, key: number): void {
    const id = this.#nextStream++
    const stream: Outgoing = { id, key, bytes: encode([message]), sent: 0, credit: STREAM_CREDIT, behind: [] }
    this.#outgoing.set(id, stream)
    if (key !== 0) this.#outgoingByKey.set(key, stream)
    this.#pump()
  }

  #pump(): void {
    if (this.#full) return
    if (this.#waiting.length > 0) {
      const waiting = this.#waiting
      this.#waiting = []
      this.#send([TAG.batch, ...waiting])
    }
    // Streams take turns, a fragment each, so that a huge answer does not hold up a merely large one.
    let moved = true
    while (moved) {
      moved = false
      for (const stream of this.#outgoing.values()) {
        if (this.#full) return
        if (stream.credit <= 0) continue
        this.#sendFragment(stream)
        moved = true
      }
    }
  }

  #sendFragment(stream: Outgoing): void {
    const end = Math.min(stream.sent + FRAGMENT_BYTES, stream.bytes.byteLength)
    const bytes = stream.bytes.subarray(stream.sent, end)
    const last = end === stream.bytes.byteLength
    stream.sent = end
    stream.credit -= bytes.byteLength
    const fragment: Fragment = [TAG.fragment, stream.id, last, bytes]
    this.#send(fragment)
    if (!last) return
    this.#outgoing.delete(stream.id)
    if (stream.key === 0) return
    this.#outgoingByKey.delete(stream.key)
    for (const [message, size] of stream.behind) this.post(message as Out, size, stream.key)
  }

  #onFrame(bytes: Uint8Array): void {
    let frame: unknown
    try {
      frame = decode(bytes)
    } catch (cause) {
      this.#break('a frame that cannot be decoded', cause)
      return
    }
    if (!Array.isArray(frame)) return this.#break('a frame that is no list')
    switch (frame[0]) {
      case TAG.batch:
        for (let i = 1; i < frame.length; i++) this.#deliver(frame[i])
        return
      case TAG.fragment:
        return this.#onFragment(frame)
      case TAG.credit:
        return this.#onCredit(frame)
      default:
        return this.#break(`a frame of unknown kind ${String(frame[0])}`)
    }
  }

  #deliver(message: unknown): void {
    if (typeof message !== 'object' || message === null || typeof (message as In).type !== 'string')
      return this.#break('a message without a type')
    this.#receive(message as In)
  }

  #onFragment(frame: unknown[]): void {
    const [, id, last, bytes] = frame as Fragment
    if (typeof id !== 'number' || !(bytes instanceof Uint8Array)) return this.#break('a malformed fragment')
    let stream = this.#incoming.get(id)
    if (!stream) this.#incoming.set(id, (stream = { parts: [], size: 0, owed: 0 }))
    stream.parts.push(bytes)
    stream.size += bytes.byteLength
    this.#held += bytes.byteLength
    if (stream.size > MAX_MESSAGE_BYTES) return this.#break(`a message of more than ${MAX_MESSAGE_BYTES} bytes`)
    if (!last) {
      stream.owed += bytes.byteLength
      this.#grant()
      return
    }
    this.#incoming.delete(id)
    this.#held -= stream.size
    this.#grant()
    let messages: unknown
    try {
      messages = decode(Buffer.concat(stream.parts))
    } catch (cause) {
      return this.#break('a fragmented message that cannot be decoded', cause)
    }
    if (!Array.isArray(messages)) return this.#break('a fragmented message that is no list')
    for (const message of messages) this.#deliver(message)
  }

  /** Gives credit back: to every stream while there is room, else only to the oldest, so that something always ends. */
  #grant(): void {
    for (const [id, stream] of this.#incoming) {
      if (stream.owed > 0) {
        const credit: Credit = [TAG.credit, id, stream.owed]
        stream.owed = 0
        this.#send(credit)
      }
      if (this.#held > REASSEMBLY_BYTES) return
    }
  }

  #onCredit(frame: unknown[]): void {
    const [, id, bytes] = frame as Credit
    if (typeof id !== 'number' || typeof bytes !== 'number' || !(bytes >= 0)) return this.#break('a malformed credit')
    const stream = this.#outgoing.get(id)
    if (!stream) return
    stream.credit += bytes
    this.#pump()
  }

  #break(what: string, cause?: unknown): void {
    this.#broken(new ManyworldsError('PROTOCOL_ERROR', `the other end sent ${what}`, { cause }))
  }
}
