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
  readonly #bridge: Pick<Bridge, 'data' | 'control'>
  readonly #worker: number
  readonly #read: (chunk: Buffer) => void
  #underWay = 0
  /** The sender was told to wait. From then on only `taken` may clear it: what is sent in between must not. */
  #senderWaits = false
  #over = false
  #onDrain: () => void = () => {}
  #onFrame: ((frame: Uint8Array) => void) | undefined
  /** Frames that came while nobody wanted them. */
  readonly #held: Uint8Array[] = []
  #paused = false
  #close: (exit: WorkerExit) => void = () => {}

  constructor(
    bridge: Pick<Bridge, 'data' | 'control'>,
    worker: number,
    id: string,
    generation: number,
    info: WorkerInfo,
  ) {
    this.#bridge = bridge
    this.#worker = worker
    this.id = id
    this.generation = generation
    this.info = info
    this.#read = frameReader(
      (frame) => this.#deliver(frame),
      () => this.kill(),
    )
    this.closed = new Promise((resolve) => {
      this.#close = resolve
    })
  }

  send(frame: Uint8Array): boolean {
    if (this.#over) return true
    const bytes = Buffer.allocUnsafe(4 + frame.byteLength)
    bytes.writeUInt32LE(frame.byteLength, 0)
    bytes.set(frame, 4)
    this.#bridge.data(this.#worker, this.generation, bytes)
    this.#underWay += bytes.byteLength
    if (this.#underWay >= WINDOW_BYTES) this.#senderWaits = true
    return !this.#senderWaits
  }

  onDrain(listener: () => void): void {
    this.#onDrain = listener
  }

  onFrame(listener: (frame: Uint8Array) => void): void {
    this.#onFrame = listener
    this.resume()
  }

  pause(): void {
    this.#paused = true
  }

  resume(): void {
    this.#paused = false
    while (this.#held.length > 0 && !this.#paused) this.#onFrame?.(this.#held.shift()!)
  }

  kill(): void {
    this.#bridge.control({ op: 'end', worker: this.#worker, generation: this.generation })
  }

  /** The actor has taken so much. */
  taken(bytes: number): void {
    this.#underWay -= bytes
    if (!this.#senderWaits || this.#underWay >= WINDOW_BYTES / 2) return
    this.#senderWaits = false
    this.#onDrain()
  }

  /** Part of its stream of frames. */
  receive(bytes: Buffer): void {
    if (this.#over) return
    this.spoke = true
    this.#read(bytes)
  }

  ended(exit: WorkerExit): void {
    if (this.#over) return
    for (const frame of this.#held.splice(0)) this.#onFrame?.(frame)
    this.#over = true
    this.#close(exit)
  }

  #deliver(frame: Uint8Array): void {
    if (this.#paused || this.#onFrame === undefined || this.#held.length > 0) this.#held.push(frame)
    else this.#onFrame(frame)
  }
}
