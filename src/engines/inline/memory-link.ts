import type { Wire } from '../../protocol/channel.ts'
import type { WorkerExit, WorkerInfo, WorkerLink } from '../engine.ts'

/** If more than this waits, the sender is told to wait for drain. */
const HIGH_WATER_BYTES = 256 * 1024
/** After this much, timers and I/O get their turn: large messages must not hold up small ones. */
const TURN_BYTES = 256 * 1024

/** Calls a function outside the async context of its caller. */
export type Outside = (deliver: () => void) => void

/**
 * One direction of a link. Frames are delivered in a microtask: not inside `send`, whose caller may be in the middle of
 * something, but before a task can block the event loop.
 */
export class MemoryPipe {
  readonly #outside: Outside
  readonly #drains: (() => void)[] = []
  #listener: ((frame: Uint8Array) => void) | undefined
  #queue: Uint8Array[] = []
  #bytes = 0
  /** Bytes delivered since timers and I/O last had their turn. */
  #turnBytes = 0
  #scheduled = false
  #paused = false
  #needsDrain = false
  #closed = false

  constructor(outside: Outside) {
    this.#outside = outside
  }

  readonly send = (frame: Uint8Array): boolean => {
    if (this.#closed) return true
    this.#queue.push(frame)
    this.#bytes += frame.byteLength
    this.#schedule()
    if (this.#bytes > HIGH_WATER_BYTES) this.#needsDrain = true
    return !this.#needsDrain
  }

  readonly onDrain = (listener: () => void): void => {
    this.#drains.push(listener)
  }

  readonly onFrame = (listener: (frame: Uint8Array) => void): void => {
    this.#listener = listener
    this.#schedule()
  }

  pause(): void {
    this.#paused = true
  }

  resume(): void {
    this.#paused = false
    this.#schedule()
  }

  /** Accepts no more frames. `deliverRest`: frames that were sent before are still delivered. */
  close(deliverRest: boolean): void {
    if (this.#closed) return
    this.#closed = true
    this.#paused = false
    if (deliverRest) this.#deliver(Number.POSITIVE_INFINITY)
    this.#queue = []
  }

  #schedule(): void {
    if (this.#scheduled) return
    this.#scheduled = true
    const deliver = () => {
      this.#scheduled = false
      this.#deliver(TURN_BYTES)
    }
    if (this.#turnBytes < TURN_BYTES) queueMicrotask(deliver)
    else
      setImmediate(() => {
        this.#turnBytes = 0
        deliver()
      })
  }

  #deliver(mostBytes: number): void {
    this.#outside(() => {
      while (this.#queue.length > 0 && this.#listener && !this.#paused) {
        if (this.#turnBytes >= mostBytes) return this.#schedule()
        const frame = this.#queue.shift()!
        this.#bytes -= frame.byteLength
        this.#turnBytes += frame.byteLength
        this.#listener(frame)
      }
      if (!this.#needsDrain || this.#queue.length > 0) return
      this.#needsDrain = false
      for (const listener of this.#drains) listener()
    })
  }
}

/** A link whose worker is in the same process, and the worker's end of it. */
export function memoryLink(
  identity: { readonly id: string; readonly generation: number; readonly info: WorkerInfo },
  outside: Outside,
  ended: () => void,
): { readonly link: WorkerLink; readonly wire: Wire } {
  const toWorker = new MemoryPipe(outside)
  const toDriver = new MemoryPipe(outside)
  const closed = Promise.withResolvers<WorkerExit>()
  let over = false
  const kill = () => {
    if (over) return
    over = true
    toWorker.close(false)
    toDriver.close(true)
    outside(ended)
    closed.resolve({ code: 0, signal: null })
  }
  return {
    link: {
      ...identity,
      send: toWorker.send,
      onDrain: toWorker.onDrain,
      onFrame: toDriver.onFrame,
      pause: () => toDriver.pause(),
      resume: () => toDriver.resume(),
      closed: closed.promise,
      kill,
    },
    wire: { send: toDriver.send, onDrain: toDriver.onDrain, onFrame: toWorker.onFrame },
  }
}
