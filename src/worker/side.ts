import { extname } from 'node:path'
import { Worker } from 'node:worker_threads'
import { ManyworldsError } from '../errors.ts'
import type { Wire } from '../protocol/channel.ts'
import type { Packed } from '../protocol/messages.ts'
import { unpack } from '../protocol/pack.ts'
import type { Asking } from './requests.ts'
import type { SideAnswer } from './side-ask.ts'

/** Messages between the event loop and its side thread. */
export type ToSide =
  | {
      type: 'ask'
      call: number
      lease: number
      service: string
      body: Packed
      size: number
      flag: Int32Array<SharedArrayBuffer>
    }
  /** The task is over, and so are its requests. */
  | { type: 'end'; lease: number }
  /** A frame from the driver, if the thread has no connection of its own. */
  | { type: 'frame'; frame: Uint8Array }

export type FromSide =
  | { type: 'answer'; call: number; ok: boolean; value: Packed }
  | { type: 'frame'; frame: Uint8Array }
  | { type: 'broken'; message: string }

export interface SideData {
  readonly fd: number | undefined
  readonly codec: string
}

interface Waiter {
  readonly lease: number
  readonly done: (value: unknown) => void
  readonly failed: (error: Error) => void
}

/**
 * The main thread's handle on the side thread, which is started on first use. If the engine gave the thread a connection of its
 * own, its requests are answered while the event loop is blocked. Otherwise its frames pass through the event loop.
 */
export class SideThread {
  readonly #fd: number | undefined
  readonly #loop: Wire
  readonly #waiting = new Map<number, Waiter>()
  #codec = ''
  #thread: Worker | undefined
  #calls = 0
  readonly #onFailed: (why: string) => void
  #failure: ManyworldsError | undefined

  /** `loop`: carries its frames if it has no connection of its own. `failed`: the thread can no longer be used. */
  constructor(fd: number | undefined, loop: Wire, failed: (why: string) => void) {
    this.#fd = fd
    this.#loop = loop
    this.#onFailed = failed
  }

  speak(codec: string): void {
    this.#codec = codec
  }

  ask(lease: number, { service, body, size }: Asking): SideAnswer {
    if (this.#failure) throw this.#failure
    const flag = new Int32Array(new SharedArrayBuffer(4))
    const call = ++this.#calls
    const answer = new Promise((done, failed) => this.#waiting.set(call, { lease, done, failed }))
    this.#tell({ type: 'ask', call, lease, service, body, size, flag })
    return { flag, answer }
  }

  /** The task is over, and so are its requests. `reason`: it was abandoned, and its requests fail with this error. */
  end(lease: number, reason: Error | undefined): void {
    for (const [call, waiter] of this.#waiting) {
      if (waiter.lease !== lease) continue
      this.#waiting.delete(call)
      if (reason) waiter.failed(reason)
    }
    if (!this.#failure) this.#tell({ type: 'end', lease })
  }

  #tell(message: ToSide): void {
    this.#thread ??= this.#start()
    this.#thread.postMessage(message)
  }

  #start(): Worker {
    const extension = extname(new URL(import.meta.url).pathname)
    const data: SideData = { fd: this.#fd, codec: this.#codec }
    const thread = new Worker(new URL(`./side-thread${extension}`, import.meta.url), {
      workerData: data,
      // Start it without the user's flags, loaders and variables.
      execArgv: [],
      env: {},
      name: 'manyworlds side thread',
    })
    thread.unref()
    thread.on('message', (message: FromSide) => this.#hear(message))
    thread.on('error', (error) => this.#fail(error.message))
    this.#loop.onFrame((frame) => this.#tell({ type: 'frame', frame: new Uint8Array(frame) }))
    return thread
  }

  #hear(message: FromSide): void {
    switch (message.type) {
      case 'frame':
        return void this.#loop.send(message.frame)
      case 'broken':
        return this.#fail(message.message)
      case 'answer':
        return this.#onAnswer(message)
      default:
        message satisfies never
    }
  }

  #onAnswer({ call, ok, value: packed }: Extract<FromSide, { type: 'answer' }>): void {
    const waiter = this.#waiting.get(call)
    if (!waiter) return
    this.#waiting.delete(call)
    const value = unpack(packed)
    if (ok) return waiter.done(value)
    const { code, message } = value as { code: ManyworldsError['code']; message: string }
    waiter.failed(new ManyworldsError(code, message))
  }

  /** It is not restarted, because it may have sent half a frame. */
  #fail(why: string): void {
    if (this.#failure) return
    this.#failure = new ManyworldsError('SERVICE_FAILED', `the side thread of the worker has failed: ${why}`)
    for (const { failed } of this.#waiting.values()) failed(this.#failure)
    this.#waiting.clear()
    this.#onFailed(why)
  }
}
