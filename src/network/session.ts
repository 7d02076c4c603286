import { firstLine } from '../text/escape-controls.ts'
import { ACK_BYTES, ACK_MESSAGES, BEAT_MS, SILENT_MS, WINDOW_BYTES } from './limits.ts'
import { ALTERED, type Peer } from './peer.ts'

/**
 * The first byte of a message is its kind. Messages of kind `control` and `data` are numbered, and arrive once, in order. `broken`
 * says that the session is over because its reader broke the protocol, and why.
 */
export const KIND = { control: 0, data: 1, ack: 2, broken: 3 } as const

const ACK_LENGTH = 9
/** Both ends send at least this often while the connection is good. */
const STEADY_MS = 1.5 * BEAT_MS
/** Host messages do not wait; but a peer that reads none of them is dropped at this limit. */
const MAX_KEPT_BYTES = 16 * WINDOW_BYTES
/** The approximate memory overhead of a message. */
const MESSAGE_COST_BYTES = 64

/** So many connections in a row may end by an altered message, each sooner than this; then the session does. */
const MAX_ALTERED = 3
const UNALTERED_MS = 10_000

export interface SessionHooks {
  /** A message arrived (without its session header). */
  message(kind: number, bytes: Buffer): void
  /** Messages were acknowledged: waiting senders may go on. */
  drained(): void
  /** Whether all processes of the other end are known to have ended. Asked while there is no connection. */
  isGone(): boolean
  /** A message was forged, or altered on its way, not by the other end: another connection is made. */
  altered?(line: string): void
  /** Nothing is said to the other end any more; the session is over when its lease must have ended. */
  abandoned?(reason: string): void
  /** The session is over: the other end was away for too long or broke the protocol. */
  ended(reason: string): void
}

/**
 * A session between a driver and a host that outlives its connections: messages are kept until they are acknowledged, and sent
 * again over the next connection. A connection that is cut for ten seconds costs ten seconds, and no work.
 */
export class Session {
  readonly id: string
  readonly #hooks: SessionHooks
  /** It is over after this time of silence. */
  lostMs: number
  /** The other end runs tasks for this one, and does so until its lease ends: nothing that is seen here ends them. */
  readonly #lends: boolean
  #peer: Peer | undefined
  #sent = 0
  #received = 0
  #receivedBytes = 0
  #acknowledged = 0
  /** Unacknowledged messages; the last of them is number `#sent`. */
  readonly #kept: Buffer[] = []
  #keptBytes = 0
  #heard = false
  #heardAt = 0
  /** Since when the connection has been up without a break. */
  #steadyFrom = 0
  #silentMs = 0
  /** The connection was closed, not by us. */
  #closed = false
  #over = false
  /** How many connections in a row have ended by an altered message. */
  #altered = 0
  /** Why nothing is said to the other end any more. */
  #abandoned: string | undefined
  readonly #waiting: (() => void)[] = []

  /** `lends`: the other end works for this one. */
  constructor(id: string, { lostMs, lends }: { lostMs: number; lends: boolean }, hooks: SessionHooks) {
    this.id = id
    this.lostMs = lostMs
    this.#lends = lends
    this.#hooks = hooks
  }

  get received(): number {
    return this.#received
  }

  get attached(): boolean {
    return this.#peer !== undefined
  }

  /** For how long the connection has been up without a break. */
  get connectedForMs(): number {
    const now = performance.now()
    return this.#peer === undefined || now - this.#heardAt > STEADY_MS ? 0 : now - this.#steadyFrom
  }

  get over(): boolean {
    return this.#over
  }

  /** Nothing is said any more; only the end of the other end's lease is waited for. */
  get abandoned(): boolean {
    return this.#abandoned !== undefined
  }

  get whyAbandoned(): string | undefined {
    return this.#abandoned
  }

  /** Whether frames may be sent, in addition to host messages. */
  get hasRoom(): boolean {
    return this.#peer !== undefined && this.#keptBytes < WINDOW_BYTES
  }

  /** Detaches the connection because another is being made, whose counts would not include what still arrives here. */
  letGo(): number {
    this.#peer?.socket.terminate()
    this.#peer = undefined
    return this.#received
  }

  /** Continues over this connection. `theirs`: how many of our messages the other end has. */
  attach(peer: Peer, theirs: number): void {
    if (this.#over || this.abandoned) return peer.socket.terminate()
    this.#peer?.socket.terminate()
    // An earlier hello that was held back on its way: its end has made another connection since.
    if (theirs >= 0 && theirs < this.#sent - this.#kept.length) {
      this.#peer = undefined
      this.#closed = true
      return peer.socket.terminate()
    }
    this.#peer = peer
    this.#heard = true
    this.#heardAt = this.#steadyFrom = performance.now()
    this.#silentMs = 0
    this.#closed = false
    if (theirs > this.#sent || theirs < 0) return this.#break('an impossible acknowledgement count')
    this.#forget(theirs)
    for (const message of this.#kept) peer.send(message)
    peer.listen(
      ({ bytes }) => {
        if (this.#peer === peer) this.#onMessage(bytes)
      },
      () => this.#onClose(peer),
    )
    if (this.#peer === peer) this.#hooks.drained()
  }

  /** Sends a message now, or when there is a connection again. Its first byte is its kind. */
  send(message: Buffer): void {
    if (this.#over || this.abandoned) return
    this.#sent++
    this.#kept.push(message)
    this.#keptBytes += message.byteLength + MESSAGE_COST_BYTES
    if (this.#keptBytes > MAX_KEPT_BYTES) {
      this.#peer?.socket.terminate()
      return this.lose(`it stopped reading; the send buffer exceeded ${MAX_KEPT_BYTES / 2 ** 20} MB`)
    }
    this.#peer?.send(message)
  }

  /** To be called every BEAT_MS: sends a heartbeat, and counts how long the other end has been silent. */
  beat(passedMs = BEAT_MS): void {
    if (this.endIfGone()) return
    this.#acknowledge()
    // If our own last beat was too long ago, this process was suspended, not the other end.
    this.#silentMs = this.#heard && passedMs < this.lostMs ? 0 : this.#silentMs + passedMs
    this.#heard = false
    if (this.#silentMs >= this.lostMs)
      return this.end(
        this.#abandoned ??
          (this.#closed
            ? 'it has ended, or its connection was cut'
            : `nothing was heard from it for ${Math.round(this.#silentMs / 1000)} s`),
      )
    // The connection may be dead without having been closed. Drop it, so that a new one can be made.
    if (this.#silentMs >= SILENT_MS) this.#peer?.socket.terminate()
  }

  /** Ends it if all processes of the other end are gone. Returns whether it is over. */
  endIfGone(): boolean {
    if (!this.#over && this.#peer === undefined && this.#hooks.isGone()) this.end('its process has ended')
    return this.#over
  }

  /**
   * The other end cannot be trusted, or does not know the session. If it may still work for this one, nothing more is said to it,
   * so that its lease ends before this session does.
   */
  lose(reason: string): void {
    if (!this.#lends) return this.end(reason)
    if (this.#over || this.abandoned) return
    this.#abandoned = reason
    this.#peer?.socket.terminate()
    this.#peer = undefined
    this.#silentMs = 0
    this.#heard = false
    this.#wake()
    this.#hooks.abandoned?.(reason)
  }

  /** Nothing listens where the other end did. For a driver that proves nothing: it may be a proxy that has ended. */
  onRefused(): void {
    if (!this.endIfGone() && !this.#lends) this.end('its process has ended')
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

  /** Resolves when its connection is gone; another may be attached unless the session is over. */
  untilDetached(): Promise<void> {
    if (this.#peer === undefined) return Promise.resolve()
    return new Promise((resolve) => this.#waiting.push(resolve))
  }

  #wake(): void {
    for (const resolve of this.#waiting.splice(0)) resolve()
  }

  #onMessage(bytes: Buffer): void {
    this.#heard = true
    const now = performance.now()
    if (now - this.#heardAt > STEADY_MS) this.#steadyFrom = now
    this.#heardAt = now
    const kind = bytes[0]
    if (kind === undefined) return this.#break('a message that is not part of the protocol')
    if (kind === KIND.ack) {
      if (bytes.byteLength !== ACK_LENGTH) return this.#break('a malformed acknowledgement')
      const theirs = bytes.readDoubleLE(1)
      if (!(Number.isInteger(theirs) && theirs <= this.#sent && theirs >= this.#sent - this.#kept.length))
        return this.#break('an acknowledgement of messages that were never sent')
      this.#forget(theirs)
      return this.#hooks.drained()
    }
    if (kind === KIND.broken) return this.lose(`it ended the session: ${firstLine(bytes.toString('utf8', 1, 1000))}`)
    if (kind !== KIND.control && kind !== KIND.data) return this.#break(`a message of unknown kind ${kind}`)
    this.#received++
    this.#receivedBytes += bytes.byteLength
    if (this.#receivedBytes >= ACK_BYTES || this.#received - this.#acknowledged >= ACK_MESSAGES) this.#acknowledge()
    this.#hooks.message(kind, bytes.subarray(1))
  }

  #acknowledge(): void {
    // The peer is not reading; skip this heartbeat, the next one includes its content.
    if (this.#peer === undefined || this.#peer.socket.bufferedAmount > 2 * WINDOW_BYTES) return
    const ack = Buffer.allocUnsafe(ACK_LENGTH)
    ack[0] = KIND.ack
    ack.writeDoubleLE(this.#received, 1)
    this.#acknowledged = this.#received
    this.#receivedBytes = 0
    this.#peer.send(ack)
  }

  #forget(theirs: number): void {
    const gone = this.#kept.splice(0, theirs - (this.#sent - this.#kept.length))
    for (const { byteLength } of gone) this.#keptBytes -= byteLength + MESSAGE_COST_BYTES
  }

  #onClose(peer: Peer): void {
    if (this.#peer !== peer) return
    const { connectedForMs } = this
    this.#peer = undefined
    if (peer.altered) {
      this.#altered = connectedForMs > UNALTERED_MS ? 1 : this.#altered + 1
      if (this.#altered > MAX_ALTERED) {
        this.#tellBroken(peer, ALTERED)
        return this.lose(`it sent ${ALTERED}`)
      }
      this.#hooks.altered?.(`${ALTERED} has ended the connection; it is made again`)
    }
    // If we closed it, SILENT_MS have passed already.
    this.#closed = this.#silentMs < SILENT_MS
    this.#heard = false
    this.#wake()
  }

  /** The other end broke the protocol: closes the session with the reason. */
  #break(what: string): void {
    if (this.#peer) {
      this.#tellBroken(this.#peer, what)
      this.#peer.refuse(what)
    }
    this.#peer = undefined
    this.end(`it sent ${what}`)
  }

  /** So that it ends its side at once. A close of the connection could come from anybody in between. */
  #tellBroken(peer: Peer, what: string): void {
    peer.send(Buffer.concat([Buffer.of(KIND.broken), Buffer.from(what)]))
  }

  /** For protocol errors that only the reader of a message can see. */
  refuse(what: string): void {
    this.#break(what)
  }
}
