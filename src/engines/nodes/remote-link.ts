import type { Mux } from '../../network/mux.ts'
import type { WorkerExit, WorkerInfo, WorkerLink } from '../engine.ts'

/** A worker on another machine, as the executor sees it. */
export class RemoteLink implements WorkerLink {
  readonly id: string
  readonly generation: number
  readonly info: WorkerInfo
  readonly closed: Promise<WorkerExit>
  readonly steadyMs: () => number
  readonly #mux: Mux
  readonly #worker: number
  readonly #onKill: () => void
  #close: (exit: WorkerExit) => void = () => {}
  #onDrain: () => void = () => {}
  #onFrame: ((frame: Uint8Array) => void) | undefined
  /** Frames that came while nobody wanted them. */
  readonly #held: Uint8Array[] = []
  #paused = false

  constructor(
    mux: Mux,
    worker: number,
    id: string,
    info: WorkerInfo,
    { onKill, steadyMs }: { onKill: () => void; steadyMs: () => number },
  ) {
    this.steadyMs = steadyMs
    this.id = id
    this.generation = worker
    this.info = info
    this.#mux = mux
    this.#worker = worker
    this.#onKill = onKill
    this.closed = new Promise((resolve) => {
      this.#close = resolve
    })
    mux.open(worker, { frame: (frame) => this.#receive(frame), drained: () => this.#onDrain() })
  }

  send(frame: Uint8Array): boolean {
    return this.#mux.send(this.#worker, frame)
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
    if (this.#held.length === 0) this.#mux.taken(this.#worker)
  }

  kill(): void {
    this.#mux.control({ type: 'kill', worker: this.#worker })
    this.#onKill()
  }

  /** The process is gone, or the machine is; what it had said before was delivered, or never will be. */
  ended(exit: WorkerExit): void {
    this.#mux.close(this.#worker)
    for (const frame of this.#held.splice(0)) this.#onFrame?.(frame)
    this.#close(exit)
  }

  #receive(frame: Uint8Array): boolean {
    if (this.#paused || this.#onFrame === undefined) {
      this.#held.push(frame)
      return false
    }
    this.#onFrame(frame)
    return true
  }
}
