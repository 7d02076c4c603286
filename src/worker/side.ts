import { extname } from 'node:path'
import { Worker } from 'node:worker_threads'
import { ManyworldsError } from '../errors.ts'
import type { Wire } from '../protocol/channel.ts'
import type { Packed } from '../protocol/messages.ts'
import { unpack } from '../protocol/pack.ts'
import type { Asking } from './requests.ts'
import type { SideAnswer } from './side-ask.ts'

/** What the event loop tells its side thread, and what it hears. */
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
  /** The task is over: so is all that was asked for it. */
  | { type: 'forget'; lease: number }
  /** A frame of the driver's, where the thread has no wire of its own. */
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
 * The thread beside the event loop, as the loop sees it. It is started when it is first needed. Where the engine gave it a
 * wire of its own, it is served while the loop is blocked; else its frames go through the loop, when that is free.
 */
export class SideThread {
  readonly #fd: number | undefined
  readonly #loop: Wire
  readonly #waiting = new Map<number, Waiter>()
  #codec = ''
  #thread: Worker | undefined
  #calls = 0

  /** `loop`: where its frames go if it has no wire. */
  constructor(fd: number | undefined, loop: Wire) {
    this.#fd = fd
    this.#loop = loop
  }

  speak(codec: string): void {
    this.#codec = codec
  }

  ask(lease: number, { service, body, size }: Asking): SideAnswer {
    const flag = new Int32Array(new SharedArrayBuffer(4))
    const call = ++this.#calls
    const answer = new Promise((done, failed) => this.#waiting.set(call, { lease, done, failed }))
    this.#tell({ type: 'ask', call, lease, service, body, size, flag })
    return { flag, answer }
  }

  forget(lease: number): void {
    for (const [call, waiter] of this.#waiting) if (waiter.lease === lease) this.#waiting.delete(call)
    this.#tell({ type: 'forget', lease })
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
      // None of the user's flags, loaders or variables.
      execArgv: [],
      env: {},
      name: 'manyworlds side thread',
    })
    thread.unref()
    thread.on('message', (message: FromSide) => this.#hear(message))
    // What it waited for will not come; the next request starts another.
    thread.on('error', (error) => this.#fail(error.message))
    this.#loop.onFrame((frame) => this.#tell({ type: 'frame', frame: new Uint8Array(frame) }))
    return thread
  }

  #hear(message: FromSide): void {
    if (message.type === 'frame') return void this.#loop.send(message.frame)
    if (message.type === 'broken') return this.#fail(message.message)
    const waiter = this.#waiting.get(message.call)
    if (!waiter) return
    this.#waiting.delete(message.call)
    const value = unpack(message.value)
    if (message.ok) return waiter.done(value)
    const { code, message: text } = value as { code: ManyworldsError['code']; message: string }
    waiter.failed(new ManyworldsError(code, text))
  }

  #fail(why: string): void {
    this.#thread = undefined
    for (const { failed } of this.#waiting.values())
      failed(new ManyworldsError('SERVICE_FAILED', `the side thread of the worker has failed: ${why}`))
    this.#waiting.clear()
  }
}
