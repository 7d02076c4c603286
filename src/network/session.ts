import { ACK_BYTES, ACK_MESSAGES, BEAT_MS, RETURN_MS, SILENT_MS, WINDOW_BYTES } from './limits.ts'
import type { Peer } from './peer.ts'

/** The first byte of a message says what it is. Those of kind `ack` are not counted; all others are, and arrive once, in order. */
export const KIND = { control: 0, data: 1, ack: 2 } as const

const ACK_LENGTH = 9
/** Both ends are heard at least this often, while all is well. */
const STEADY_MS = 1.5 * BEAT_MS
/** What is said about workers does not wait; but somebody who takes nothing of it at all is not worth our memory. */
const MAX_KEPT_BYTES = 16 * WINDOW_BYTES
/** What a message costs us beside its bytes, about. */
const MESSAGE_COST_BYTES = 64

export interface SessionHooks {
  /** A message arrived, without what says that it is one. */
  message(kind: number, bytes: Buffer): void
  /** Something was acknowledged: what waits may go on. */
  roomier(): void
  /** It is over: the other end has been away for too long, or has said what nobody says. */
  ended(reason: string): void
}

/**
 * A conversation between a driver and a host that outlives its connections: messages are kept until the other end has
 * them, and sent again over the next connection. A link that was cut for ten seconds has cost ten seconds.
 */
export class Session {
  readonly id: string
  readonly #hooks: SessionHooks
  readonly #lostMs: number
  #peer: Peer | undefined
  #sent = 0
  #received = 0
  #receivedBytes = 0
  #acknowledged = 0
  /** Messages that the other end may not have; the last of them is number `#sent`. */
  readonly #kept: Buffer[] = []
  #keptBytes = 0
  #heard = false
  #heardAt = 0
  /** Since then nothing was missed for longer than it takes to say so. */
  #steadyFrom = 0
  #silentMs = 0
  /** The other end has closed the connection, or what is between us has. */
  #closed = false
  #over = false
  readonly #waiting: (() => void)[] = []

  /** After `lostMs` of silence it is over. */
  constructor(id: string, lostMs: number, hooks: SessionHooks) {
    this.id = id
    this.#lostMs = lostMs
    this.#hooks = hooks
  }

  get received(): number {
    return this.#received
  }

  get attached(): boolean {
    return this.#peer !== undefined
  }

  /** For how long the other end was heard without a break. */
  get steadyMs(): number {
    const now = performance.now()
    return this.#peer === undefined || now - this.#heardAt > STEADY_MS ? 0 : now - this.#steadyFrom
  }

  get over(): boolean {
    return this.#over
  }

  /** Whether more than what has to be may be sent. */
  get hasRoom(): boolean {
    return this.#peer !== undefined && this.#keptBytes < WINDOW_BYTES
  }

  /** Lets go of its connection, because another is being made: what is received from now on would not be counted there. */
  letGo(): number {
    this.#peer?.socket.terminate()
    this.#peer = undefined
    return this.#received
  }

  /** Goes on over this connection. `theirs`: how many of our messages the other end has. */
  attach(peer: Peer, theirs: number): void {
    if (this.#over) return peer.socket.terminate()
    this.#peer?.socket.terminate()
    this.#peer = peer
    this.#heard = true
    this.#heardAt = this.#steadyFrom = performance.now()
    this.#silentMs = 0
    this.#closed = false
    if (theirs > this.#sent || theirs < this.#sent - this.#kept.length)
      return this.#break('a count of what it has that cannot be')
    this.#forget(theirs)
    for (const message of this.#kept) peer.socket.send(message)
    peer.listen(
      ({ bytes, isBinary }) => {
        if (this.#peer === peer) this.#onMessage(bytes, isBinary)
      },
      () => this.#onClose(peer),
    )
    if (this.#peer === peer) this.#hooks.roomier()
  }

  /** Says something, now or when there is a connection again. `message` begins with a byte for its kind. */
  send(message: Buffer): void {
    if (this.#over) return
    this.#sent++
    this.#kept.push(message)
    this.#keptBytes += message.byteLength + MESSAGE_COST_BYTES
    if (this.#keptBytes > MAX_KEPT_BYTES) {
      this.#peer?.socket.terminate()
      return this.end('it takes nothing of what it is told')
    }
    this.#peer?.socket.send(message)
  }

  /** To be called every BEAT_MS: says that we are there, and counts how long the other end has been silent. */
  beat(passedMs = BEAT_MS): void {
    if (this.#over) return
    this.#acknowledge()
    // What was heard may be as old as the last beat: where that is too long ago, it was us who were away.
    this.#silentMs = this.#heard && passedMs < this.#lostMs ? 0 : this.#silentMs + passedMs
    this.#heard = false
    if (this.#silentMs >= this.#lostMs)
      return this.end(
        this.#closed
          ? 'it has ended, or its connection was cut'
          : `nothing was heard from it for ${Math.round(this.#silentMs / 1000)} s`,
      )
    // A connection may be dead without anybody having said so. Without it, a new one can be made.
    if (this.#silentMs >= SILENT_MS) this.#peer?.socket.terminate()
  }

  /** Ends it for good. */
  end(reason: string): void {
    if (this.#over) return
    this.#over = true
    this.#kept.length = 0
    this.#peer?.socket.close(1000)
    this.#peer = undefined
    this.#wake()
    this.#hooks.ended(reason)
  }

  /** Resolves when its connection is gone; another may be attached, unless it is over. */
  untilDetached(): Promise<void> {
    if (this.#peer === undefined) return Promise.resolve()
    return new Promise((resolve) => this.#waiting.push(resolve))
  }

  #wake(): void {
    for (const resolve of this.#waiting.splice(0)) resolve()
  }

  #onMessage(bytes: Buffer, isBinary: boolean): void {
    this.#heard = true
    const now = performance.now()
    if (now - this.#heardAt > STEADY_MS) this.#steadyFrom = now
    this.#heardAt = now
    const kind = bytes[0]
    if (!isBinary || kind === undefined) return this.#break('a message that is none of ours')
    if (kind === KIND.ack) {
      if (bytes.byteLength !== ACK_LENGTH) return this.#break('a malformed acknowledgement')
      const theirs = bytes.readDoubleLE(1)
      if (!(Number.isInteger(theirs) && theirs <= this.#sent && theirs >= this.#sent - this.#kept.length))
        return this.#break('an acknowledgement of what was never sent')
      this.#forget(theirs)
      return this.#hooks.roomier()
    }
    if (kind !== KIND.control && kind !== KIND.data) return this.#break(`a message of unknown kind ${kind}`)
    this.#received++
    this.#receivedBytes += bytes.byteLength
    if (this.#receivedBytes >= ACK_BYTES || this.#received - this.#acknowledged >= ACK_MESSAGES) this.#acknowledge()
    this.#hooks.message(kind, bytes.subarray(1))
  }

  #acknowledge(): void {
    // One for whom so much waits does not read; the next one tells the same and more.
    if (this.#peer === undefined || this.#peer.socket.bufferedAmount > 2 * WINDOW_BYTES) return
    const ack = Buffer.allocUnsafe(ACK_LENGTH)
    ack[0] = KIND.ack
    ack.writeDoubleLE(this.#received, 1)
    this.#acknowledged = this.#received
    this.#receivedBytes = 0
    this.#peer.socket.send(ack)
  }

  #forget(theirs: number): void {
    const gone = this.#kept.splice(0, theirs - (this.#sent - this.#kept.length))
    for (const { byteLength } of gone) this.#keptBytes -= byteLength + MESSAGE_COST_BYTES
  }

  #onClose(peer: Peer): void {
    if (this.#peer !== peer) return
    this.#peer = undefined
    // Not by our own doing, which has cost SILENT_MS already: a process that ended, or a link that will be back soon.
    this.#closed = this.#silentMs < SILENT_MS
    if (this.#closed) this.#silentMs = Math.max(this.#silentMs, this.#lostMs - RETURN_MS)
    this.#heard = false
    this.#wake()
  }

  /** The other end has said what nobody says: this connection ends, with the reason, and nothing else does. */
  #break(what: string): void {
    this.#peer?.refuse(what)
    this.#peer = undefined
    this.end(`it sent ${what}`)
  }

  /** For what only the reader of a message can see. */
  refuse(what: string): void {
    this.#break(what)
  }
}
