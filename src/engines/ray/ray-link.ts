import type { WorkerExit, WorkerInfo, WorkerLink } from '../engine.ts'
import { frameReader } from '../frames.ts'
import type { Bridge } from './bridge.ts'

/** What may be under way to a worker before the executor is asked to wait. */
const WINDOW_BYTES = 1024 * 1024

/** A worker in an actor, as the executor sees it. */
export class RayLink implements WorkerLink {
  readonly id: string
  readonly generation: number
  readonly info: WorkerInfo
  readonly closed: Promise<WorkerExit>
  /** Whether anything ever came from it. */
  spoke = false
  readonly #bridge: Bridge
  readonly #worker: number
  #underWay = 0
  #full = false
  #over = false
  #onDrain: () => void = () => {}
  #read: ((chunk: Buffer) => void) | undefined
  readonly #held: Buffer[] = []
  #paused = false
  #close: (exit: WorkerExit) => void = () => {}

  constructor(bridge: Bridge, worker: number, id: string, generation: number, info: WorkerInfo) {
    this.#bridge = bridge
    this.#worker = worker
    this.id = id
    this.generation = generation
    this.info = info
    this.closed = new Promise((resolve) => {
      this.#close = resolve
    })
  }

  send(frame: Uint8Array): boolean {
    if (this.#over) return true
    const bytes = Buffer.allocUnsafe(4 + frame.byteLength)
    bytes.writeUInt32LE(frame.byteLength, 0)
    bytes.set(frame, 4)
    this.#bridge.data(this.#worker, bytes)
    this.#underWay += bytes.byteLength
    this.#full = this.#underWay >= WINDOW_BYTES
    return !this.#full
  }

  onDrain(listener: () => void): void {
    this.#onDrain = listener
  }

  onFrame(listener: (frame: Uint8Array) => void): void {
    this.#read = frameReader(listener, () => this.kill())
    this.resume()
  }

  pause(): void {
    this.#paused = true
  }

  resume(): void {
    this.#paused = false
    while (this.#held.length > 0 && !this.#paused) this.#read?.(this.#held.shift()!)
  }

  kill(): void {
    this.#bridge.control({ op: 'end', worker: this.#worker })
  }

  /** The actor has taken so much. */
  taken(bytes: number): void {
    this.#underWay -= bytes
    if (!this.#full || this.#underWay >= WINDOW_BYTES / 2) return
    this.#full = false
    this.#onDrain()
  }

  /** Part of its stream of frames. */
  receive(bytes: Buffer): void {
    if (this.#over) return
    this.spoke = true
    if (this.#paused || this.#read === undefined) this.#held.push(bytes)
    else this.#read(bytes)
  }

  ended(exit: WorkerExit): void {
    if (this.#over) return
    for (const bytes of this.#held.splice(0)) this.#read?.(bytes)
    this.#over = true
    this.#close(exit)
  }
}
