import { ManyworldsError } from '../errors.ts'
import { decode, encode, kindOf, PLAIN } from './codec.ts'
import { MAX_VALUE_BYTES } from './pack.ts'
import { creditFrame, fragmentFrame, KIND, LAST_STREAM, readCredit, readFragment } from './raw-frames.ts'

/** What carries frames: a worker's link in the driver, the socket to the driver in a worker. */
export interface Wire {
  /** False: the other end is slow; wait for drain. The frame is accepted in any case. */
  send(frame: Uint8Array): boolean
  onDrain(listener: () => void): void
  onFrame(listener: (frame: Uint8Array) => void): void
  /** True while sent bytes are still buffered in this process; they would be lost if it ended. */
  holdsBytes?(): boolean
}

/** A larger message is sent in fragments, so that small messages can overtake it. */
export const BULK_BYTES = 256 * 1024
const FRAGMENT_BYTES = 64 * 1024
/** Only the last fragment of a stream may be smaller: each fragment has a cost in memory beyond its bytes. */
const LEAST_FRAGMENT_BYTES = 4 * 1024
/** Bytes of one stream that may be in flight before the receiver acknowledges some. */
const STREAM_CREDIT = 1024 * 1024
/** Streams in flight at once; the others wait. A receiver refuses more, because each may use up its credit in memory. */
const MAX_STREAMS = 256
/** Above this many bytes of unfinished streams, a receiver gives credit to the oldest stream only. */
const REASSEMBLY_BYTES = 128 * 1024 * 1024
const MAX_MESSAGE_BYTES = MAX_VALUE_BYTES + 16 * 1024 * 1024
/** The largest frame before a codec is agreed on: the sender has not proved who it is. */
const MAX_PLAIN_BYTES = 4 * 1024 * 1024
/** Larger batches are sent at once. */
const SOON_BYTES = 64 * 1024
/** Waiting messages per frame: each is smaller than a bulk message, and a frame has a maximum size. */
const WAITING_PER_FRAME = 32

/** Undefined if the other end may send this message, else what is wrong with it. */
export type MessageCheck = (message: unknown) => string | undefined

/** Undefined if the bytes may be decoded, else why not. */
export type BatchScan = (frame: Uint8Array) => string | undefined

interface Outgoing {
  readonly id: number
  readonly key: number
  readonly bytes: Uint8Array
  sent: number
  credit: number
  /** Messages of the same key that came while this one was on its way; order within a key is kept. */
  readonly behind: [message: unknown, size: number][]
}

interface Incoming {
  readonly parts: Uint8Array[]
  size: number
  /** Bytes that it was given credit for, in all. */
  allowed: number
  /** Bytes whose credit was held back. */
  owed: number
}

/**
 * Messages over a wire. Three lanes: control goes at once, ordinary messages wait while the wire is full, bulk goes in
 * fragments with credit per stream whenever nothing else wants to. Order is kept within the ordinary lane, and within a
 * key (a lease) also across lanes.
 *
 * Nothing received is trusted: an invalid message breaks the channel, and nothing after it is delivered.
 */
export class Channel<Out extends { type: string }, In extends { type: string }> {
  readonly #wire: Wire
  readonly #check: MessageCheck
  readonly #receive: (message: In) => void
  readonly #onBroken: (error: ManyworldsError) => void
  readonly #scan: BatchScan | undefined
  #codec = PLAIN
  /** The codec of incoming batches, by their first byte. */
  #kind = kindOf(PLAIN)
  /** A batch came in the agreed codec: the other end uses it, and JSON is no longer accepted. */
  #agreed = false
  #broken = false
  #full = false
  #waiting: Out[] = []
  #riders: Out[] = []
  /** Messages that are sent at the end of this turn of the event loop. */
  #soon: Out[] = []
  #soonBytes = 0
  #lastStream = 0
  readonly #outgoing = new Map<number, Outgoing>()
  readonly #outgoingByKey = new Map<number, Outgoing>()
  readonly #incoming = new Map<number, Incoming>()
  #held = 0

  constructor(
    wire: Wire,
    check: MessageCheck,
    receive: (message: In) => void,
    broken: (error: ManyworldsError) => void,
    /** Given if the other end may be hostile. */
    scan?: BatchScan,
  ) {
    this.#wire = wire
    this.#check = check
    this.#receive = receive
    this.#onBroken = broken
    this.#scan = scan
    wire.onFrame((frame) => this.#onFrame(frame))
    wire.onDrain(() => {
      this.#full = false
      this.#pump()
    })
  }

  /**
   * From now on, sends in the agreed codec, and accepts only that codec once the other end uses it too. Before, messages are
   * sent as JSON and must be plain data.
   */
  speak(codec: string): void {
    this.#codec = codec
    this.#kind = kindOf(codec)
  }

  /** A delivered message was invalid: deliver nothing more. */
  refuse(what: string, cause: unknown): void {
    this.#refuse(`${what}: ${cause instanceof Error ? cause.message : String(cause)}`, cause)
  }

  /** Sends ahead of everything that waits. */
  control(message: Out): void {
    this.#send([message])
  }

  /** Sends in the same frame as the next ordinary message, and before it: for messages that are not urgent. */
  ride(message: Out): void {
    this.#riders.push(message)
  }

  /** Like `post`, but in one frame with all other messages of this turn of the event loop: for many small messages. */
  postSoon(message: Out, size = 0, key = 0): void {
    if (size > SOON_BYTES || (key !== 0 && this.#outgoingByKey.has(key))) return this.post(message, size, key)
    if (this.#soon.length === 0) queueMicrotask(() => this.#sendSoon())
    this.#soon.push(message)
    this.#soonBytes += size
    if (this.#soonBytes > SOON_BYTES) this.#sendSoon()
  }

  #sendSoon(): void {
    if (this.#soon.length === 0) return
    const messages = this.#soon
    this.#soon = []
    this.#soonBytes = 0
    const riders = this.#riders
    this.#riders = []
    this.#post(riders.length > 0 ? [...riders, ...messages] : messages)
  }

  /** Sends in order. `size` is the rough size of its payload, `key` the lease it belongs to, if it is of one only. */
  post(message: Out, size = 0, key = 0): void {
    if (this.#soon.length > 0) this.#sendSoon()
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
    else this.#send([message])
  }

  #post(messages: Out[]): void {
    if (this.#full) this.#waiting.push(...messages)
    else this.#send(messages)
  }

  /** True while a sent message is still in this process. */
  get holdsBytes(): boolean {
    return this.#full || (this.#wire.holdsBytes?.() ?? false)
  }

  #send(messages: Out[]): void {
    const frame = this.#encode(messages)
    if (frame) this.#sendFrame(frame)
  }

  #sendFrame(frame: Uint8Array): void {
    if (!this.#wire.send(frame)) this.#full = true
  }

  /** Undefined if it cannot be encoded. Then the channel breaks, because the other end would wait for the message forever. */
  #encode(messages: unknown[]): Uint8Array | undefined {
    try {
      return encode(messages, this.#codec)
    } catch (cause) {
      this.#break(`a message cannot be sent in ${this.#codec}: ${(cause as Error).message}`, cause)
      return undefined
    }
  }

  #openStream(message: unknown, key: number): void {
    const bytes = this.#encode([message])
    if (!bytes) return
    this.#lastStream = this.#lastStream === LAST_STREAM ? 1 : this.#lastStream + 1
    const id = this.#lastStream
    const stream: Outgoing = { id, key, bytes, sent: 0, credit: STREAM_CREDIT, behind: [] }
    this.#outgoing.set(id, stream)
    if (key !== 0) this.#outgoingByKey.set(key, stream)
    this.#pump()
  }

  #pump(): void {
    while (this.#waiting.length > 0) {
      if (this.#full) return
      this.#send(this.#waiting.splice(0, WAITING_PER_FRAME))
    }
    // Streams take turns, a fragment each, so that a huge answer does not hold up a merely large one.
    let moved = true
    while (moved) {
      moved = false
      let turns = MAX_STREAMS
      for (const stream of this.#outgoing.values()) {
        if (this.#full || turns-- === 0) break
        if (stream.credit <= 0) continue
        this.#sendFragment(stream)
        moved = true
      }
      if (this.#full) return
    }
  }

  #sendFragment(stream: Outgoing): void {
    const end = Math.min(stream.sent + FRAGMENT_BYTES, stream.bytes.byteLength)
    const bytes = stream.bytes.subarray(stream.sent, end)
    const last = end === stream.bytes.byteLength
    stream.sent = end
    stream.credit -= bytes.byteLength
    this.#sendFrame(fragmentFrame({ stream: stream.id, last, bytes }))
    if (!last) return
    this.#outgoing.delete(stream.id)
    if (stream.key === 0) return
    this.#outgoingByKey.delete(stream.key)
    for (const [message, size] of stream.behind) this.post(message as Out, size, stream.key)
  }

  #onFrame(frame: Uint8Array): void {
    if (this.#broken) return
    switch (frame[0]) {
      case KIND.fragment:
        return this.#onFragment(frame)
      case KIND.credit:
        return this.#onCredit(frame)
      default:
        return this.#onBatch(frame, 'a frame')
    }
  }

  #onBatch(frame: Uint8Array, what: string): void {
    if (frame[0] === this.#kind) this.#agreed = this.#codec !== PLAIN
    else if (this.#agreed || frame[0] !== KIND.plain) return this.#refuse(`${what} in a codec that was not agreed on`)
    if (frame[0] === KIND.plain && frame.byteLength > MAX_PLAIN_BYTES)
      return this.#refuse(`a first message of ${frame.byteLength} bytes`)
    const unsafe = this.#scan?.(frame)
    if (unsafe !== undefined) return this.#refuse(`${what} that is not decoded: ${unsafe}`)
    let messages: unknown[]
    try {
      messages = decode(frame)
    } catch (cause) {
      return this.#refuse(`${what} that cannot be decoded: ${(cause as Error).message}`, cause)
    }
    for (let i = 0; i < messages.length; i++) {
      const wrong = this.#check(messages[i])
      if (wrong !== undefined) return this.#refuse(wrong)
      this.#receive(messages[i] as In)
      if (this.#broken) return
    }
  }

  #onFragment(frame: Uint8Array): void {
    const fragment = readFragment(frame)
    if (!fragment) return this.#refuse('a malformed fragment')
    const { stream: id, last, bytes } = fragment
    const size = bytes.byteLength
    if (!last && size < LEAST_FRAGMENT_BYTES) return this.#refuse(`a fragment of ${size} bytes that is not the last`)
    let stream = this.#incoming.get(id)
    if (!stream) {
      if (this.#incoming.size === MAX_STREAMS) return this.#refuse(`more than ${MAX_STREAMS} streams at once`)
      this.#incoming.set(id, (stream = { parts: [], size: 0, allowed: STREAM_CREDIT, owed: 0 }))
    }
    stream.parts.push(ownBytes(bytes))
    stream.size += size
    this.#held += size
    if (stream.size > MAX_MESSAGE_BYTES) return this.#refuse(`a message of more than ${MAX_MESSAGE_BYTES} bytes`)
    // A fragment is sent whole if there is credit for a part of it.
    if (stream.size >= stream.allowed + FRAGMENT_BYTES) return this.#refuse('more of a stream than it had credit for')
    if (!last) {
      stream.owed += size
      this.#grant()
      return
    }
    this.#incoming.delete(id)
    this.#held -= stream.size
    this.#grant()
    this.#onBatch(Buffer.concat(stream.parts), 'a fragmented message')
  }

  /** Gives credit back: to every stream while there is room, else only to the oldest, so that one always finishes. */
  #grant(): void {
    for (const [id, stream] of this.#incoming) {
      if (stream.owed > 0) {
        const bytes = stream.owed
        stream.owed = 0
        stream.allowed += bytes
        this.#sendFrame(creditFrame({ stream: id, bytes }))
      }
      if (this.#held > REASSEMBLY_BYTES) return
    }
  }

  #onCredit(frame: Uint8Array): void {
    const credit = readCredit(frame)
    if (!credit) return this.#refuse('a malformed credit')
    const stream = this.#outgoing.get(credit.stream)
    if (!stream) return
    stream.credit += credit.bytes
    this.#pump()
  }

  #refuse(what: string, cause?: unknown): void {
    this.#break(`the other end sent ${what}`, cause)
  }

  #break(why: string, cause: unknown): void {
    if (this.#broken) return
    this.#broken = true
    this.#incoming.clear()
    this.#held = 0
    this.#onBroken(new ManyworldsError('PROTOCOL_ERROR', why, { cause }))
  }
}

/** Copies a small part of a large buffer, so that it does not keep the whole buffer in memory. */
const ownBytes = (bytes: Uint8Array): Uint8Array =>
  bytes.buffer.byteLength > 2 * bytes.byteLength ? new Uint8Array(bytes) : bytes
