import type { EngineEvents, Placement, RuntimeEngine, WorkerExit, WorkerLink } from '../src/engines/engine.ts'
import { CODECS, decode, encode, PLAIN } from '../src/protocol/codec.ts'
import {
  type DriverMessage,
  OUTCOME,
  type Outcome,
  PROTOCOL_VERSION,
  type WorkerMessage,
} from '../src/protocol/messages.ts'

/** Outcomes per frame, as a real worker would flush them. */
const FLUSH = 256

/** Links whose workers answer every task with its input, a few links per turn of the event loop, and do nothing else. */
export class SimulatedEngine implements RuntimeEngine {
  readonly apiVersion = 1
  readonly name = 'simulated'
  readonly #links: SimulatedLink[] = []
  #stopped = false
  #held = 0
  #peak = 0

  async start({ workers }: Placement, events: EngineEvents): Promise<void> {
    for (let i = 0; i < workers; i++) {
      const link = new SimulatedLink(`s${i}`, (by) => {
        this.#held += by
        this.#peak = Math.max(this.#peak, this.#held)
      })
      this.#links.push(link)
      events.link(link)
    }
    this.#turn(0)
  }

  /** The most tasks that were in flight since the last look. */
  takePeak(): number {
    const peak = this.#peak
    this.#peak = 0
    return peak
  }

  async stop(): Promise<void> {
    this.#stopped = true
    for (const link of this.#links) link.kill()
  }

  /** Workers answer in turn, so that many tasks are in flight while a few are answered. */
  #turn(at: number): void {
    if (this.#stopped) return
    this.#links[at % this.#links.length]?.answer()
    setImmediate(() => this.#turn(at + 1))
  }
}

class SimulatedLink implements WorkerLink {
  readonly id: string
  readonly generation = 0
  readonly info = { host: 'simulated' }
  readonly closed: Promise<WorkerExit>
  readonly #count: (by: number) => void
  #end!: (exit: WorkerExit) => void
  #listener: (frame: Uint8Array) => void = () => {}
  #held: Outcome[] = []
  #hungry = false

  constructor(id: string, count: (by: number) => void) {
    this.id = id
    this.#count = count
    this.closed = new Promise((resolve) => {
      this.#end = resolve
    })
  }

  onDrain(): void {}
  pause(): void {}
  resume(): void {}

  onFrame(listener: (frame: Uint8Array) => void): void {
    this.#listener = listener
    setImmediate(() =>
      this.#say({ type: 'ready', protocol: PROTOCOL_VERSION, codecs: CODECS, node: process.version, pid: 0 }),
    )
  }

  kill(): void {
    this.#end({ code: 0, signal: null })
  }

  send(frame: Uint8Array): boolean {
    for (const message of decode(frame) as DriverMessage[]) this.#receive(message)
    return true
  }

  #receive(message: DriverMessage): void {
    if (message.type === 'agent') setImmediate(() => this.#say({ type: 'loaded', agent: message.key }))
    if (message.type !== 'run') return
    for (const [lease, , , input] of message.tasks) this.#held.push([lease, OUTCOME.success, input, 10])
    this.#count(message.tasks.length)
    this.#hungry = true
  }

  answer(): void {
    if (this.#hungry) {
      this.#hungry = false
      this.#say({ type: 'hungry' })
    }
    const outcomes = this.#held.splice(0, FLUSH)
    if (outcomes.length === 0) return
    this.#count(-outcomes.length)
    this.#say({ type: 'done', records: [], outcomes })
  }

  #say(message: WorkerMessage): void {
    this.#listener(encode([message], message.type === 'ready' ? PLAIN : CODECS[0]!))
  }
}
