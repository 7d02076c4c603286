import { CHUNK_BYTES, MAX_FRAME_BYTES, STREAM_BYTES } from './limits.ts'
import { KIND, type Session } from './session.ts'

/** The header of a piece: kind, stream, and whether it is the last piece of its frame. */
const HEADER_BYTES = 6
/** How far a sender may exceed its credit: a started piece is sent whole. */
const OVERDRAFT_BYTES = HEADER_BYTES + CHUNK_BYTES

/** The credit that a piece costs: an empty frame is not free either. */
const cost = (piece: Uint8Array) => HEADER_BYTES + piece.byteLength

interface Outgoing {
  readonly frames: Uint8Array[]
  /** Bytes of the first frame that were sent. */
  at: number
  credit: number
  /** `send` returned false: the sender waits for `drained`. */
  blocked: boolean
  readonly drained: () => void
}

interface Incoming {
  parts: Uint8Array[]
  size: number
  readonly maxBytes: () => number
  /** Bytes that the other end may still send. */
  credit: number
  /** Bytes whose credit has not been returned. */
  owed: number
  /** Bytes that the reader has not consumed. */
  withheld: number
  readonly frame: (frame: Uint8Array) => boolean
}

export interface StreamHooks {
  /** A frame arrived. False: give no credit for it until `taken` is called. */
  frame(frame: Uint8Array): boolean
  drained(): void
  /** The most bytes of a frame. Default: MAX_FRAME_BYTES. */
  readonly maxBytes?: () => number
  /** The initial credit of each direction, in bytes. Infinity: not limited. Default: STREAM_BYTES. */
  readonly credit?: number
}

/**
 * Many streams of frames over one session. Each has its own credit, so that a worker that does not read blocks no other; streams
 * take turns; and host messages overtake all frames.
 */
export class Mux {
  readonly #session: Session
  readonly #outgoing = new Map<number, Outgoing>()
  readonly #incoming = new Map<number, Incoming>()
  /** Streams with waiting frames, in the order of their turns. */
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

  /** Sends a host message at once, ahead of all frames. */
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

  /** The reader has consumed frames for which it had returned false. */
  taken(stream: number): void {
    const incoming = this.#incoming.get(stream)
    if (incoming === undefined || incoming.withheld === 0) return
    const bytes = incoming.withheld
    incoming.withheld = 0
    this.#owe(stream, incoming, bytes)
  }

  /** Sends one piece per stream with credit, in turns, as far as allowed. */
  pump(): void {
    // `drained` makes senders send more; the outer loop handles that.
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

  /** A piece of a frame arrived. Returns what is wrong with it, if anything. */
  onData(bytes: Buffer): string | undefined {
    if (bytes.byteLength < HEADER_BYTES - 1) return 'a piece of a frame that is too short'
    const stream = bytes.readUInt32LE(0)
    const last = bytes[4] === 1
    const piece = bytes.subarray(HEADER_BYTES - 1)
    const incoming = this.#incoming.get(stream)
    // It belongs to a worker that has just ended.
    if (incoming === undefined) return undefined
    // Our own senders send full pieces. Small pieces would cost far more memory than their bytes.
    if (last ? piece.byteLength > CHUNK_BYTES : piece.byteLength !== CHUNK_BYTES)
      return 'a piece of a frame with the wrong size'
    incoming.credit -= cost(piece)
    if (incoming.credit < -OVERDRAFT_BYTES) return 'more bytes of a stream than its credit'
    incoming.size += piece.byteLength
    const maxBytes = incoming.maxBytes()
    if (incoming.size > maxBytes) return `a frame of more than ${maxBytes} bytes`
    if (!last) {
      // A frame may be larger than its stream's credit; then it needs more to continue.
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
