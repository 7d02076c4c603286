import type { Socket } from 'node:net'
import type { RawData, WebSocket } from 'ws'
import { firstLine } from '../text/escape-controls.ts'
import type { Seals } from './channel.ts'
import { CHUNK_BYTES, MAX_HANDSHAKE_BYTES, MAX_MESSAGE_BYTES } from './limits.ts'

export interface PeerMessage {
  readonly bytes: Buffer
  readonly isBinary: boolean
}

/** Bytes that may arrive before they are read: the other end may send everything right after its welcome. */
const MAX_EARLY_BYTES = 4 * MAX_MESSAGE_BYTES
/** The approximate memory overhead of a message. */
const MESSAGE_COST_BYTES = 64
const TOO_MUCH = 'it sent too much data before the handshake completed'
/** The size of a WebSocket frame header. */
const FRAME_BYTES = 14
/** WebSocket close code: policy violation. */
const BROKE_RULES = 1008
/** Time to read the reason of the refusal. */
const REFUSED_MS = 500

export const ALTERED = 'a message that was forged, or altered on its way'

/** A connection that loses no message between its readers: first the handshake, then a session. */
export class Peer {
  readonly socket: WebSocket
  /** The address of the other end, for messages. */
  readonly address: string
  /** Whether it keeps this process alive. */
  readonly keepAlive: (alive: boolean) => void
  /** It was closed here, because a message did not come from the other end as it was. */
  altered = false
  readonly #early: PeerMessage[] = []
  #earlyBytes = 0
  #messages = 0
  #sentTooMuch = false
  #closed: string | undefined
  #channel: Seals | undefined
  #refused = false
  #onMessage: ((message: PeerMessage) => void) | undefined
  #onClose: (() => void) | undefined

  constructor(socket: WebSocket, address: string, keepAlive: (alive: boolean) => void) {
    this.socket = socket
    this.address = address
    this.keepAlive = keepAlive
    socket.on('message', (data: RawData, isBinary: boolean) => {
      this.#messages++
      // A refused peer may go on sending for a while.
      if (this.#refused) return
      const message = { bytes: data as Buffer, isBinary }
      if (this.#onMessage) this.#deliver(message)
      else this.#keep(message)
    })
    // Don't answer the pings of a peer that does not read: the pongs would pile up here.
    socket.on('ping', (data: Buffer) => {
      if (socket.bufferedAmount < CHUNK_BYTES) socket.pong(data)
    })
    socket.on('error', (error: Error) => {
      this.#closed ??= error.message
    })
    socket.on('close', (code: number, reason: Buffer) => {
      this.#closed ??= firstLine(reason.toString()) || `code ${code}`
      this.#onClose?.()
    })
  }

  /**
   * Limits the bytes of an unauthenticated peer until the returned function is called. `ws` has one limit for the whole
   * connection, and would assemble the first megabyte of anyone. To be called once `ws` reads the socket, so that both count
   * the same bytes.
   */
  limitStranger(raw: Socket): () => void {
    let messages = this.#messages
    let unfinished = 0
    const count = (bytes: Buffer) => {
      unfinished = this.#messages === messages ? unfinished + bytes.byteLength : 0
      messages = this.#messages
      if (unfinished <= MAX_HANDSHAKE_BYTES + FRAME_BYTES) return
      raw.off('data', count)
      // Stop reading. The waiting reader gets an error and can tell the peer why it is refused.
      this.socket.pause()
      this.#sentTooMuch = true
      this.#onClose?.()
    }
    raw.on('data', count)
    return () => void raw.off('data', count)
  }

  /** From now on every message of both directions is sealed. What has arrived and was not read counts as sealed too. */
  secure(channel: Seals): void {
    this.#channel = channel
  }

  send(message: Uint8Array): void {
    if (this.#channel === undefined) throw new Error('nothing can be sent before the handshake is done')
    if (this.socket.readyState === this.socket.OPEN) this.socket.send(this.#channel.seal(message))
  }

  /** The next message; undefined if none comes in time. Rejects when the connection is closed. */
  next(withinMs: number): Promise<PeerMessage | undefined> {
    return new Promise((resolve, reject) => {
      const done = () => {
        clearTimeout(timer)
        this.#onMessage = undefined
        this.#onClose = undefined
      }
      const closed = () => {
        done()
        const closed = this.altered ? `it sent ${ALTERED}` : `it closed the connection (${this.#closed})`
        reject(new Error(this.#sentTooMuch ? TOO_MUCH : closed))
      }
      const timer = setTimeout(() => {
        done()
        resolve(undefined)
      }, withinMs)
      this.#onMessage = (message) => {
        done()
        resolve(message)
      }
      this.#onClose = closed
      const early = this.#early.shift()
      if (early) this.#deliver(early)
      else if (this.#closed !== undefined || this.#sentTooMuch) closed()
    })
  }

  /** From now on all messages go to `onMessage`. */
  listen(onMessage: (message: PeerMessage) => void, onClose: () => void): void {
    this.#onMessage = onMessage
    this.#onClose = onClose
    for (const message of this.#early.splice(0)) if (!this.#refused) this.#deliver(message)
    if (this.#closed !== undefined) onClose()
  }

  /** Closes the connection with a reason, and ignores what still arrives. */
  refuse(why: string): void {
    this.#refused = true
    this.#early.length = 0
    this.socket.close(BROKE_RULES, why.slice(0, 100))
    setTimeout(() => this.socket.terminate(), REFUSED_MS).unref()
  }

  #deliver(message: PeerMessage): void {
    if (this.#channel === undefined) return this.#onMessage?.(message)
    const bytes = message.isBinary ? this.#channel.open(message.bytes) : undefined
    if (bytes !== undefined) return this.#onMessage?.({ bytes, isBinary: true })
    this.altered = true
    this.#closed ??= ALTERED
    this.#onClose?.()
    this.refuse(ALTERED)
  }

  #keep(message: PeerMessage): void {
    this.#earlyBytes += message.bytes.byteLength + MESSAGE_COST_BYTES
    if (this.#earlyBytes > MAX_EARLY_BYTES) this.refuse('too much data before the handshake completed')
    else this.#early.push(message)
  }
}
