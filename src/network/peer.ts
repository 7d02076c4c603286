import type { RawData, WebSocket } from 'ws'

export interface PeerMessage {
  readonly bytes: Buffer
  readonly isBinary: boolean
}

/** So much may come before anybody reads it: the other end may send its first messages right after its welcome. */
const MAX_EARLY = 1024

/** A connection from which nothing is lost between those who read it: the handshake first, then a session. */
export class Peer {
  readonly socket: WebSocket
  /** The machine at the other end, for messages to people. */
  readonly address: string
  /** Whether it keeps this process alive. */
  readonly keepAlive: (alive: boolean) => void
  readonly #early: PeerMessage[] = []
  #closed: string | undefined
  #onMessage: ((message: PeerMessage) => void) | undefined
  #onClose: (() => void) | undefined

  constructor(socket: WebSocket, address: string, keepAlive: (alive: boolean) => void) {
    this.socket = socket
    this.address = address
    this.keepAlive = keepAlive
    socket.on('message', (data: RawData, isBinary: boolean) => {
      const message = { bytes: data as Buffer, isBinary }
      if (this.#onMessage) this.#onMessage(message)
      else if (this.#early.push(message) > MAX_EARLY) socket.terminate()
    })
    socket.on('error', (error: Error) => {
      this.#closed ??= error.message
    })
    socket.on('close', (code: number, reason: Buffer) => {
      this.#closed ??= reason.toString() || `code ${code}`
      this.#onClose?.()
    })
  }

  /** The next message; undefined if none comes in time. Rejects when the connection is closed. */
  next(withinMs: number): Promise<PeerMessage | undefined> {
    const early = this.#early.shift()
    if (early) return Promise.resolve(early)
    return new Promise((resolve, reject) => {
      const done = () => {
        clearTimeout(timer)
        this.#onMessage = undefined
        this.#onClose = undefined
      }
      const closed = () => {
        done()
        reject(new Error(`it closed the connection (${this.#closed})`))
      }
      const timer = setTimeout(() => {
        done()
        resolve(undefined)
      }, withinMs)
      if (this.#closed !== undefined) return closed()
      this.#onMessage = (message) => {
        done()
        resolve(message)
      }
      this.#onClose = closed
    })
  }

  /** From now on all messages go to `onMessage`. */
  listen(onMessage: (message: PeerMessage) => void, onClose: () => void): void {
    this.#onMessage = onMessage
    this.#onClose = onClose
    for (const message of this.#early.splice(0)) onMessage(message)
    if (this.#closed !== undefined) onClose()
  }
}
