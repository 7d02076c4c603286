import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import type { BlobFolder } from '../blob-folder.ts'
import { BUNDLE_FILE } from '../call-site.ts'
import type { EngineEvents, WorkerLink } from '../engines/engine.ts'
import { LocalRuntime } from '../engines/local/local-runtime.ts'
import { type DriverToHost, type HostToDriver, parseDriverMessage } from '../network/host-messages.ts'
import { BEAT_MS, BLOB_STREAM, BLOB_STREAM_BYTES, CHUNK_BYTES } from '../network/limits.ts'
import { Mux } from '../network/mux.ts'
import type { Peer } from '../network/peer.ts'
import { haveEnded, type NamedProcess } from '../network/same-machine.ts'
import { KIND, Session } from '../network/session.ts'
import { BUNDLES_VARIABLE, PACKAGES_VARIABLE } from '../worker/bundles.ts'
import { BLOBS_VARIABLE } from '../worker/role.ts'
import { BlobIntake } from './blob-intake.ts'
import type { BundleStore } from './bundle-store.ts'
import { guardMemory } from './memory-guard.ts'
import type { WorkFolder } from './work-folder.ts'

/** The stream of bundles. */
export const BUNDLE_STREAM = 0
/** How many bundles a driver may offer before it has sent one. */
const MAX_OFFERS = 100

export interface DriverHooks {
  readonly bundles: BundleStore
  readonly blobs: BlobFolder
  readonly workFolder: WorkFolder
  /** The folder whose packages workers may use. */
  readonly packagesFolder: string
  readonly env: Readonly<Record<string, string>>
  readonly workerMemoryMb: number | undefined
  readonly leaseMs: number
  /** How many of the wanted workers it may have. */
  grant(wanted: number): number
  /** One of its workers has ended. */
  freed(): void
  /** It has sent its placement. */
  came(): void
  log(line: string): void
  /** Its driver is done and its workers are gone; the driver waits for the end of the connection. */
  dismissed(): Promise<void>
  ended(reason: string): void
}

type Place = Extract<DriverToHost, { type: 'place' }>

/** One driver: its workers and their frames. If the driver is away for longer than its lease, its workers are ended. */
export class DriverSession {
  readonly session: Session
  readonly startedAt = Date.now()
  driver = 'a driver'
  wanted = 0
  /** The driver was told that it has to wait. */
  told = false
  /** The driver has said that it is done. */
  dismissed = false
  readonly #hooks: DriverHooks
  readonly #mux: Mux
  readonly #links = new Map<number, WorkerLink>()
  readonly #blobs: BlobIntake
  /** Bundles that were requested. */
  readonly #offered: { sha256: string; bytes: number }[] = []
  /** Requested bundles, and those that are being checked here. */
  #offers = 0
  #engine: LocalRuntime | undefined
  #starting: Promise<void> | undefined
  #folder: string | undefined
  #nextWorker = 1
  #draining = false
  #ending = false
  /** The driver's process. */
  #caller: NamedProcess | undefined
  #beatAt = performance.now()
  readonly #beats: NodeJS.Timeout

  constructor(id: string, hooks: DriverHooks) {
    this.#hooks = hooks
    const terms = { lostMs: hooks.leaseMs, lends: false }
    this.session = new Session(id, terms, {
      message: (kind, bytes) => this.#onMessage(kind, bytes),
      drained: () => this.#mux.pump(),
      isGone: () => this.#caller !== undefined && haveEnded(this.#caller),
      altered: (line) => hooks.log(`${this.driver}: ${line}`),
      ended: (reason) => void this.#end(reason),
    })
    this.#mux = new Mux(this.session)
    this.#mux.open(BUNDLE_STREAM, {
      frame: (bytes) => this.#onBundle(bytes),
      drained: () => {},
      // Don't reassemble what was not offered.
      maxBytes: () => this.#offered[0]?.bytes ?? 0,
      credit: Number.POSITIVE_INFINITY,
    })
    this.#blobs = new BlobIntake(hooks.blobs, {
      say: (message) => this.say(message),
      taken: () => this.#mux.taken(BLOB_STREAM),
      refuse: (what) => this.session.refuse(what),
    })
    this.#mux.open(BLOB_STREAM, {
      frame: (piece) => this.#blobs.piece(piece),
      drained: () => {},
      maxBytes: () => CHUNK_BYTES,
      credit: BLOB_STREAM_BYTES,
    })
    // By the clock: a host is idle, so a gap means that it was suspended.
    this.#beats = setInterval(() => {
      const now = performance.now()
      const passed = now - this.#beatAt
      this.#beatAt = now
      this.session.beat(passed)
      if (hooks.workerMemoryMb !== undefined && this.#engine) guardMemory(this.#engine.links, hooks.workerMemoryMb)
    }, BEAT_MS)
  }

  get workers(): number {
    return this.#links.size
  }

  get tasks(): number {
    return (this.#engine?.links ?? []).reduce((sum, link) => sum + link.tasks, 0)
  }

  attach(peer: Peer, received: number): void {
    this.session.attach(peer, received)
  }

  say(message: HostToDriver): void {
    this.#mux.control(message)
  }

  /** Starts nothing more, and asks the driver to take its tasks to other hosts. */
  drain(reason: string): void {
    this.#draining = true
    void this.#engine?.scale(0)
    this.say({ type: 'drain', reason })
  }

  /** There may be room for more of its wanted workers. */
  fill(): void {
    if (this.#draining || this.session.over) return
    // The driver's placement may be invalid, so starting a process may fail.
    this.#engine?.scale(this.#hooks.grant(this.wanted)).catch((error: Error) => this.#fail(error))
  }

  /** Ends its workers, and then tells the driver, which may run their tasks elsewhere from then on. */
  async end(reason: string): Promise<void> {
    this.#ending = true
    await this.#stopWorkers()
    if (!this.session.over) this.say({ type: 'bye', reason })
    this.session.end(reason)
  }

  #onMessage(kind: number, bytes: Buffer): void {
    if (kind === KIND.data) {
      const wrong = this.#mux.onData(bytes)
      if (wrong !== undefined) this.session.refuse(wrong)
      return
    }
    const message = parseDriverMessage(bytes)
    if (message === undefined) return this.session.refuse('a malformed message')
    switch (message.type) {
      case 'place':
        this.driver = message.driver
        this.#caller = { machine: message.machine, pid: message.pid }
        this.#hooks.came()
        this.#starting ??= this.#place(message).catch((error: Error) => this.#fail(error))
        return
      case 'workers':
        this.wanted = message.workers
        void this.#starting?.then(() => this.fill())
        return
      case 'kill':
        return this.#links.get(message.worker)?.kill()
      case 'offer':
        return void this.#onOffer(message)
      case 'blob-offer':
        return void this.#blobs.offer(message.sha256, message.bytes)
      case 'blob-drop':
        return void this.#blobs.drop(message.sha256)
      case 'credit':
        return this.#mux.onCredit(message.worker, message.bytes)
      case 'bye':
        return void this.#goodbye()
      default:
        message satisfies never
    }
  }

  async #onOffer({ sha256, bytes }: { sha256: string; bytes: number }): Promise<void> {
    if (++this.#offers > MAX_OFFERS) return this.session.refuse('too many offers of bundles')
    if (await this.#hooks.bundles.has(sha256, this)) {
      this.#offers--
      return this.say({ type: 'have', sha256 })
    }
    this.#offered.push({ sha256, bytes })
    this.say({ type: 'send', sha256 })
  }

  /** Bundles arrive in the order of the requests. */
  #onBundle(bytes: Uint8Array): boolean {
    const expected = this.#offered.shift()
    if (expected === undefined || expected.bytes !== bytes.byteLength) {
      this.session.refuse('a bundle that was not requested')
      return true
    }
    this.#offers--
    const { sha256 } = expected
    this.#hooks.bundles.put(sha256, bytes, this).then(
      () => this.say({ type: 'have', sha256 }),
      (error: Error) => this.say({ type: 'refuse', sha256, reason: error.message.slice(0, 1000) }),
    )
    return true
  }

  async #place({ runtime, execArgv, env, output }: Place): Promise<void> {
    const { bundles, blobs, workFolder, workerMemoryMb, packagesFolder } = this.#hooks
    if (!(await bundles.has(runtime, this))) throw new Error("the driver did not send the workers' program")
    this.#folder = await workFolder.newFolder('driver-')
    if (this.session.over) return this.#removeFolder()
    const engine = new LocalRuntime({
      // Output is worth less than answers: it is dropped if the connection is too slow for both.
      show: (lines, worker) =>
        this.session.hasRoom && this.say({ type: 'output', place: placeOf(worker), text: lines.slice(0, 100_000) }),
    })
    this.#engine = engine
    const events: EngineEvents = {
      link: (link) => this.#relay(link),
      retire: () => {},
      capacityGrew: () => {},
      failed: (error) => this.#fail(error),
      // For this machine's operator only: a driver would get the same line from each of its hosts.
      notice: (line) => this.#hooks.log(line),
    }
    const placement = {
      workers: 0,
      workerEntry: join(bundles.folder, runtime, BUNDLE_FILE),
      execArgv: [...(workerMemoryMb === undefined ? [] : [`--max-old-space-size=${workerMemoryMb}`]), ...execArgv],
      cwd: this.#folder,
      env: {
        ...{ ...this.#hooks.env, ...env, [BUNDLES_VARIABLE]: bundles.folder, [BLOBS_VARIABLE]: blobs.path },
        [PACKAGES_VARIABLE]: packagesFolder,
      },
      output,
      remote: { execArgv: [], env: {} },
    }
    await engine.start(placement, events, new AbortController().signal)
  }

  #fail(error: Error): void {
    this.#hooks.log(`no worker can be started for ${this.driver}: ${error.message.split('\n')[0]}`)
    this.say({ type: 'failed', reason: error.message.slice(0, 10_000) })
  }

  #relay(link: WorkerLink): void {
    const worker = this.#nextWorker++
    let exited: (() => void) | undefined
    this.#links.set(worker, link)
    this.#mux.open(worker, {
      frame: (frame) => link.send(frame),
      drained: () => {
        link.resume()
        exited?.()
      },
    })
    const { pid } = link.info
    const place = placeOf(link.id)
    this.say({ type: 'started', worker, place, ...(pid === undefined ? {} : { pid }) })
    link.onDrain(() => this.#mux.taken(worker))
    link.onFrame((frame) => {
      if (!this.#mux.send(worker, frame)) link.pause()
    })
    void link.closed.then((exit) => {
      this.#links.delete(worker)
      this.#hooks.freed()
      // Send its last frames first: a crash is judged by what arrived before it.
      exited = () => {
        this.#mux.close(worker)
        // It did not end by itself: no task is to be blamed.
        if (this.#ending) return
        this.say({ type: 'ended', worker, exit: { ...exit } })
      }
      if (!this.#mux.isWaiting(worker)) exited()
    })
  }

  /** The driver waits for the end of the connection, which tells it that its workers are gone. */
  async #goodbye(): Promise<void> {
    this.dismissed = true
    await this.#stopWorkers()
    await this.#hooks.dismissed()
    this.session.end('the driver is done')
  }

  async #end(reason: string): Promise<void> {
    clearInterval(this.#beats)
    await this.#stopWorkers()
    await this.#removeFolder()
    await this.#blobs.end().catch((error: Error) => this.#hooks.log(error.message))
    await this.#hooks.bundles.release(this).catch((error: Error) => this.#hooks.log(error.message))
    this.#hooks.ended(reason)
  }

  /** Reads and drops the workers' last frames: otherwise the exit of a paused worker would never be seen. */
  async #stopWorkers(): Promise<void> {
    for (const [worker, link] of this.#links) {
      this.#mux.close(worker)
      link.resume()
    }
    await this.#engine?.stop()
  }

  async #removeFolder(): Promise<void> {
    if (this.#folder !== undefined) await rm(this.#folder, { recursive: true, force: true }).catch(() => {})
  }
}

/** The number of a worker of the local engine: `local-3`. */
const placeOf = (worker: string) => Number(worker.replace(/\D/g, ''))
