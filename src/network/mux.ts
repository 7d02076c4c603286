import { CHUNK_BYTES, MAX_FRAME_BYTES, STREAM_BYTES } from './limits.ts'
import { KIND, type Session } from './session.ts'

/** In front of a piece of a frame: kind, stream, whether it is the last piece. */
const HEADER_BYTES = 6
/** How far a sender may go beyond its credit: a piece that was begun is sent. */
const OVERDRAFT_BYTES = HEADER_BYTES + CHUNK_BYTES

/** What a piece takes of its stream's credit: an empty frame is not free either. */
const cost = (piece: Uint8Array) => HEADER_BYTES + piece.byteLength

interface Outgoing {
  readonly frames: Uint8Array[]
  /** Of the first frame: what is sent of it. */
  at: number
  credit: number
  /** Its sender was told to wait. */
  blocked: boolean
  readonly drained: () => void
}

interface Incoming {
  parts: Uint8Array[]
  size: number
  readonly maxBytes: () => number
  /** What the other end may still send. */
  credit: number
  /** Bytes whose credit was not given back yet. */
  owed: number
  /** Bytes that the reader has not taken yet. */
  withheld: number
  readonly frame: (frame: Uint8Array) => boolean
}

export interface StreamHooks {
  /** A frame arrived. False: give no credit for it until `taken` is called. */
  frame(frame: Uint8Array): boolean
  drained(): void
  /** Of a frame that is on its way. */
  readonly maxBytes?: () => number
  /** Unlimited: for what is bounded by other means. */
  readonly credit?: number
}

/**
 * Many streams of frames over one session. Each has a credit of its own, so that a worker which does not read holds up
 * nobody else; those that have something to send take turns; and what is said *about* workers passes them all.
 */
export class Mux {
  readonly #session: Session
  readonly #outgoing = new Map<number, Outgoing>()
  readonly #incoming = new Map<number, Incoming>()
  /** Streams with frames that wait, in the order in which they have their turns. */
  readonly #waiting = new Set<number>()
  #pumping = false

  constructor(session: Session) {
    this.#session = session
  }

  open(stream: number, { frame, drained, maxBytes = () => MAX_FRAME_BYTES, credit = STREAM_BYTES }: StreamHooks): void {
    this.#outgoing.set(stream, { frames: [], at: 0, credit, blocked: false, drained })
    this.#incoming.set(stream, { parts: [], size: 0, maxBytes, credit, owed: 0, withheld: 0, frame })
  }

  close(stream: number): void {
    this.#outgoing.delete(stream)
    this.#incoming.delete(stream)
    this.#waiting.delete(stream)
  }

  /** Whether frames of this stream wait. */
  isWaiting(stream: number): boolean {
    return this.#waiting.has(stream)
  }

  /** Says something about workers: at once, ahead of all frames. */
  control(message: object): void {
    const text = Buffer.from(JSON.stringify(message))
    const bytes = Buffer.allocUnsafe(text.byteLength + 1)
    bytes[0] = KIND.control
    text.copy(bytes, 1)
    this.#session.send(bytes)
  }

  /** Takes the frame. False: wait for `drained`. */
  send(stream: number, frame: Uint8Array): boolean {
    const out = this.#outgoing.get(stream)
    if (out === undefined) return true
    out.frames.push(frame)
    this.#waiting.add(stream)
    this.pump()
    out.blocked = out.frames.length > 0
    return !out.blocked
  }

  /** The reader has taken frames for which it had answered false. */
  taken(stream: number): void {
    const incoming = this.#incoming.get(stream)
    if (incoming === undefined || incoming.withheld === 0) return
    const bytes = incoming.withheld
    incoming.withheld = 0
    this.#owe(stream, incoming, bytes)
  }

  /** Sends what may be sent: a piece of each stream that has credit, in turns. */
  pump(): void {
    // Whoever is told that it may go on sends more; that is for the loop which told it.
    if (this.#pumping) return
    this.#pumping = true
    try {
      this.#pump()
    } finally {
      this.#pumping = false
    }
  }

  #pump(): void {
    let moved = true
    while (moved) {
      moved = false
      for (const stream of this.#waiting) {
        if (!this.#session.hasRoom) return
        const out = this.#outgoing.get(stream)!
        if (out.credit <= 0) continue
        this.#sendPiece(stream, out)
        moved = true
        if (out.frames.length > 0) continue
        this.#waiting.delete(stream)
        if (!out.blocked) continue
        out.blocked = false
        out.drained()
      }
    }
  }

  onCredit(stream: number, bytes: number): void {
    const out = this.#outgoing.get(stream)
    if (out === undefined) return
    out.credit += bytes
    this.pump()
  }

  /** A piece of a frame arrived. Answers what is wrong with it, if something is. */
  onData(bytes: Buffer): string | undefined {
    if (bytes.byteLength < HEADER_BYTES - 1) return 'a piece of a frame that is too short'
    const stream = bytes.readUInt32LE(0)
    const last = bytes[4] === 1
    const piece = bytes.subarray(HEADER_BYTES - 1)
    const incoming = this.#incoming.get(stream)
    // Of a worker that has just ended.
    if (incoming === undefined) return undefined
    // Our senders cut frames like this. Small pieces would cost far more memory than they have bytes.
    if (last ? piece.byteLength > CHUNK_BYTES : piece.byteLength !== CHUNK_BYTES)
      return 'a piece of a frame that has not the size of one'
    incoming.credit -= cost(piece)
    if (incoming.credit < -OVERDRAFT_BYTES) return 'more of a stream than it had credit for'
    incoming.size += piece.byteLength
    const maxBytes = incoming.maxBytes()
    if (incoming.size > maxBytes) return `a frame of more than ${maxBytes} bytes`
    if (!last) {
      // It may be larger than the credit of its stream, and then has to go on.
      incoming.parts.push(piece)
      this.#owe(stream, incoming, cost(piece))
      return undefined
    }
    const { parts } = incoming
    const frame = parts.length === 0 ? piece : Buffer.concat([...parts, piece])
    incoming.parts = []
    incoming.size = 0
    if (incoming.frame(frame)) this.#owe(stream, incoming, cost(piece))
    else incoming.withheld += cost(piece)
    return undefined
  }

  #owe(stream: number, incoming: Incoming, bytes: number): void {
    incoming.owed += bytes
    if (incoming.owed < STREAM_BYTES / 4 || incoming.credit === Number.POSITIVE_INFINITY) return
    incoming.credit += incoming.owed
    this.control({ type: 'credit', worker: stream, bytes: incoming.owed })
    incoming.owed = 0
  }

  #sendPiece(stream: number, out: Outgoing): void {
    const frame = out.frames[0]!
    const end = Math.min(out.at + CHUNK_BYTES, frame.byteLength)
    const size = end - out.at
    const bytes = Buffer.allocUnsafe(HEADER_BYTES + size)
    bytes[0] = KIND.data
    bytes.writeUInt32LE(stream, 1)
    bytes[5] = end === frame.byteLength ? 1 : 0
    bytes.set(frame.subarray(out.at, end), HEADER_BYTES)
    out.credit -= HEADER_BYTES + size
    out.at = end
    if (end === frame.byteLength) {
      out.frames.shift()
      out.at = 0
    }
    this.#session.send(bytes)
  }
}
