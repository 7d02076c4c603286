import type { Mux } from '../../network/mux.ts'
import type { WorkerExit, WorkerInfo, WorkerLink } from '../engine.ts'
import { HeldFrames } from '../held-frames.ts'

/** A worker on another machine, as the executor sees it. */
export class RemoteLink implements WorkerLink {
  readonly id: string
  readonly generation: number
  readonly info: WorkerInfo
  readonly closed: Promise<WorkerExit>
  readonly connectedForMs: () => number
  readonly #mux: Mux
  readonly #worker: number
  readonly #onKill: () => void
  #close: (exit: WorkerExit) => void = () => {}
  #onDrain: () => void = () => {}
  readonly #frames = new HeldFrames()

  constructor(
    mux: Mux,
    worker: number,
    id: string,
    info: WorkerInfo,
    { onKill, connectedForMs }: { onKill: () => void; connectedForMs: () => number },
  ) {
    this.connectedForMs = connectedForMs
    this.id = id
    this.generation = worker
    this.info = info
    this.#mux = mux
    this.#worker = worker
    this.#onKill = onKill
    this.closed = new Promise((resolve) => {
      this.#close = resolve
    })
    mux.open(worker, { frame: (frame) => this.#frames.add(frame), drained: () => this.#onDrain() })
  }

  send(frame: Uint8Array): boolean {
    return this.#mux.send(this.#worker, frame)
  }

  onDrain(listener: () => void): void {
    this.#onDrain = listener
  }

  onFrame(listener: (frame: Uint8Array) => void): void {
    this.#frames.listen(listener)
    this.resume()
  }

  pause(): void {
    this.#frames.pause()
  }

  resume(): void {
    this.#frames.resume()
    if (this.#frames.isEmpty) this.#mux.taken(this.#worker)
  }

  kill(): void {
    this.#mux.control({ type: 'kill', worker: this.#worker })
    this.#onKill()
  }

  /** The process or its machine is gone. Frames that have arrived are delivered first; others never will be. */
  ended(exit: WorkerExit): void {
    this.#mux.close(this.#worker)
    this.#frames.flush()
    this.#close(exit)
  }
}
