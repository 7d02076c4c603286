import { withoutKnownSecrets } from '../../redaction/unattributed.ts'
import { escapeControls } from '../../text/escape-controls.ts'
import type { WorkerExit, WorkerInfo, WorkerLink } from '../engine.ts'
import { frameReader } from '../frames.ts'
import { HeldFrames } from '../held-frames.ts'
import { LineLimit } from '../line-limit.ts'
import { lineSplitter, linesOf } from '../worker-output.ts'
import type { Bridge } from './bridge.ts'

/** Bytes on their way to a worker before the executor is told to wait. */
const WINDOW_BYTES = 1024 * 1024

/** A worker in an actor, as the executor sees it. */
export class RayLink implements WorkerLink {
  readonly id: string
  readonly generation: number
  readonly info: WorkerInfo
  readonly closed: Promise<WorkerExit>
  /** Whether the worker has sent anything. */
  spoke = false
  readonly #bridge: Pick<Bridge, 'data' | 'control'>
  readonly #worker: number
  readonly #read: (chunk: Buffer) => void
  #underWay = 0
  /** The executor was told to wait. Only `taken` clears this; sending an urgent frame does not. */
  #senderWaits = false
  #over = false
  readonly #printed = lineSplitter((lines) => this.#show(lines))
  readonly #limit: LineLimit
  #onDrain: () => void = () => {}
  readonly #frames = new HeldFrames()
  #close: (exit: WorkerExit) => void = () => {}

  constructor(
    bridge: Pick<Bridge, 'data' | 'control'>,
    worker: number,
    id: string,
    generation: number,
    info: WorkerInfo,
    notice: (line: string) => void,
  ) {
    this.#bridge = bridge
    this.#worker = worker
    this.id = id
    this.generation = generation
    this.info = info
    this.#limit = new LineLimit((lines) => notice(`worker ${id} printed too much: ${lines} lines were left out`))
    this.#read = frameReader(
      (frame) => this.#frames.add(frame),
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
    this.#frames.listen(listener)
    this.#frames.resume()
  }

  pause(): void {
    this.#frames.pause()
  }

  resume(): void {
    this.#frames.resume()
  }

  kill(): void {
    this.#bridge.control({ op: 'end', worker: this.#worker, generation: this.generation })
  }

  /** The actor has acknowledged this many bytes. */
  taken(bytes: number): void {
    this.#underWay -= bytes
    if (!this.#senderWaits || this.#underWay >= WINDOW_BYTES / 2) return
    this.#senderWaits = false
    this.#onDrain()
  }

  /** A chunk of the worker's stream of frames. */
  receive(bytes: Buffer): void {
    if (this.#over) return
    this.spoke = true
    this.#read(bytes)
  }

  /** Shows what the worker has printed outside of any task, in whole lines. */
  printed(text: string): void {
    this.#printed.add(text)
  }

  #show(lines: string): void {
    if (this.#limit.allows(lines)) process.stderr.write(escapeControls(linesOf(this.id, withoutKnownSecrets(lines))))
  }

  ended(exit: WorkerExit): void {
    if (this.#over) return
    this.#frames.flush()
    this.#printed.end()
    this.#over = true
    this.#close(exit)
  }
}
