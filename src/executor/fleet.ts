import type { BundleOptions } from '../bundle/index.ts'
import type { EngineEvents, Placement, RuntimeEngine, WorkerExit, WorkerLink } from '../engines/engine.ts'
import { ManyworldsError } from '../errors.ts'
import { agree, CODECS } from '../protocol/codec.ts'
import { PROTOCOL_VERSION, type WorkerMessage, type WorkerSettings } from '../protocol/messages.ts'
import { ALL_WORKERS } from '../run-config.ts'
import { LoadBuckets } from './load-buckets.ts'
import { Paces } from './pace.ts'
import { type Speaker, WorkerHandle } from './worker-handle.ts'

/** How long a worker may be idle while another has tasks it has not started. */
const RECALL_MS = 50

export interface FleetOptions {
  readonly engine: RuntimeEngine
  readonly placement: Omit<Placement, 'workers'>
  readonly workerNum: number
  readonly settings: WorkerSettings
  /** The script that was started, where agents made by a factory may be found. */
  readonly entryScript: string | undefined
  /** For engines whose workers do not see the driver's files. */
  readonly bundle: BundleOptions
  readonly notice: (line: string) => void
}

interface Hooks {
  receive(worker: WorkerHandle, message: WorkerMessage, by: Speaker): void
  closed(worker: WorkerHandle, exit: WorkerExit): void
  /** The worker must get no new tasks. */
  retire(worker: WorkerHandle): void
  /** The engine can now place more workers. */
  capacityGrew(): void
  /** No worker is left, and none will come. */
  failed(error: ManyworldsError): void
}

/** The workers: how many there are, who can take more, and the engine that places them. */
export class Fleet {
  readonly workers = new Set<WorkerHandle>()
  /** Workers that can take more. */
  readonly open = new LoadBuckets<WorkerHandle>()
  readonly #options: FleetOptions
  readonly #hooks: Hooks
  readonly #paces = new Paces()
  readonly #stop = new AbortController()
  #asked: number
  /** The requested number of workers for which the user was last warned. */
  #warned = 0
  #settings: WorkerSettings
  #started = false
  #wanted = 0
  #failure: ManyworldsError | undefined
  #recallTimer: NodeJS.Timeout | undefined

  constructor(options: FleetOptions, hooks: Hooks) {
    this.#options = options
    this.#hooks = hooks
    this.#asked = options.workerNum
    this.#settings = options.settings
    this.#warnOfCap()
  }

  /** The most workers there may be: as many as requested, or as the engine can place now. */
  get workerNum(): number {
    return Math.min(this.#asked, this.#options.engine.maxWorkers ?? this.#asked)
  }

  get engineName(): string {
    return this.#options.engine.name
  }

  /** Whether `reconfigure` can give it more workers. */
  get scalable(): boolean {
    return this.#options.engine.scale !== undefined
  }

  /** Whether a worker is still on its way. */
  get arriving(): boolean {
    if (this.#options.engine.elastic) return true
    const states = [...this.workers].map((worker) => worker.state)
    return states.includes('starting') || !states.includes('ready')
  }

  /** Whether a worker with these labels exists, or may arrive. */
  offers(labels: readonly string[]): boolean {
    return this.arriving || (this.#options.engine.offers?.(labels) ?? false)
  }

  /** Workers beyond the number are kept but not used. */
  reconfigure(workerNum: number, settings: WorkerSettings): void {
    this.#asked = workerNum
    this.#settings = settings
    this.#warnOfCap()
    if (this.#started && this.workerNum < this.#wanted) {
      this.#wanted = this.workerNum
      this.#options.engine.scale?.(this.#wanted).catch((error: Error) => this.#onFailed(error))
    }
    let used = 0
    for (const worker of this.workers) {
      worker.spare = used++ >= this.workerNum
      worker.reconfigure(settings)
      this.refresh(worker)
    }
  }

  /** Starts the engine, with no more workers than there is work for. */
  start(backlog: number, run: string): void {
    if (this.#started) return
    this.#started = true
    const { engine, placement, notice } = this.#options
    this.#wanted = engine.scale ? Math.min(this.workerNum, Math.max(1, backlog)) : this.workerNum
    const events: EngineEvents = {
      link: (link) => this.#onLink(link),
      retire: (link) => this.#onRetire(link),
      capacityGrew: () => {
        this.#warnOfCap()
        this.useSpare()
        this.#hooks.capacityGrew()
      },
      failed: (error) => this.#onFailed(error),
      notice,
    }
    engine
      .start({ ...placement, workers: this.#wanted, run }, events, this.#stop.signal)
      .catch((error: Error) => this.#onFailed(error))
  }

  /** All workers are busy: start more, as far as there is work for them. */
  grow(backlog: () => number): void {
    const { engine } = this.#options
    if (!this.#started || this.#wanted >= this.workerNum || !engine.scale) return
    const wanted = Math.min(this.workerNum, this.#wanted + backlog())
    if (wanted === this.#wanted) return
    this.#wanted = wanted
    engine.scale(wanted).catch((error: Error) => this.#onFailed(error))
  }

  keepAlive(alive: boolean): void {
    this.#options.engine.keepAlive?.(alive)
  }

  async shutdown(): Promise<void> {
    this.#stop.abort()
    clearTimeout(this.#recallTimer)
    for (const worker of this.workers) worker.expected = true
    if (!this.#started) return
    // Keep the process alive until the engine has stopped.
    this.keepAlive(true)
    await this.#options.engine.stop()
  }

  /** Must be called after every change that decides whether a worker can take more tasks. */
  refresh(worker: WorkerHandle): void {
    if (worker.slot >= 0) this.open.remove(worker)
    if (worker.careful && worker.leases.size === 0) worker.careful = false
    if (worker.takesMore) this.open.add(worker)
  }

  /**
   * If every worker is kept for suspects, and all suspects wait for sub-tasks, the sub-tasks would wait forever. Then opens
   * the same workers to them, and returns true.
   */
  openCareful(): boolean {
    const used = [...this.workers].filter(({ spare, state }) => !spare && state !== 'retiring')
    if (used.length === 0 || used.some(({ careful, load }) => !careful || load > 0)) return false
    for (const worker of used) {
      worker.careful = false
      this.refresh(worker)
    }
    return true
  }

  /** Retiring workers whose tasks all wait for sub-tasks, if there are no other workers and none is starting. */
  leaving(): WorkerHandle[] {
    const leaving: WorkerHandle[] = []
    for (const worker of this.workers) {
      if (worker.spare) continue
      if (worker.state !== 'retiring') return []
      if (worker.load === 0 && worker.leases.size > 0) leaving.push(worker)
    }
    return leaving
  }

  /** How many tasks the workers could hold. */
  room(): number {
    let room = 0
    for (const worker of this.workers) room += worker.window.limit
    return Math.max(2, room, this.workerNum)
  }

  /** Some workers are idle. Takes back tasks that other workers hold but have not started. */
  recallSoon(): void {
    if (this.#recallTimer !== undefined || this.workers.size === 1 || this.open.least()?.load !== 0) return
    this.#recallTimer = setTimeout(() => {
      this.#recallTimer = undefined
      if (this.open.least()?.load !== 0) return
      for (const worker of this.workers)
        if (worker.state === 'ready' && !worker.careful && worker.window.overfull(worker.load)) worker.recall()
    }, RECALL_MS)
    this.#recallTimer.unref()
  }

  /** Completes the handshake with a worker. False: it speaks another protocol or codec, and is ended. */
  welcome(worker: WorkerHandle, { protocol, codecs, node }: Extract<WorkerMessage, { type: 'ready' }>): boolean {
    // A worker says `ready` only once.
    if (worker.state !== 'starting') return false
    const codec = agree(codecs)
    if (protocol === PROTOCOL_VERSION && codec !== undefined) {
      worker.greet(codec)
      worker.state = 'ready'
      this.refresh(worker)
      return true
    }
    worker.end()
    const theirs = `worker ${worker.name.id} on ${worker.name.host} speaks protocol ${protocol} in ${codecs.join(' or ')} (Node ${node})`
    const ours = `this driver speaks ${PROTOCOL_VERSION} in ${CODECS.join(' or ')} (Node ${process.version})`
    this.#onFailed(new ManyworldsError('PROTOCOL_ERROR', `${theirs}; ${ours}; install the same versions`))
    return false
  }

  #warnOfCap(): void {
    const { engine, notice } = this.#options
    // With an elastic engine, the limit may still grow.
    if (engine.elastic || this.workerNum === this.#asked || this.#asked === ALL_WORKERS || this.#warned === this.#asked)
      return
    this.#warned = this.#asked
    notice(
      `the ${engine.name} engine can place ${this.workerNum} of the ${this.#asked} workers asked for; each runs up to ${this.#settings.concurrency} tasks at once`,
    )
  }

  #onRetire(link: WorkerLink): void {
    for (const worker of this.workers) if (worker.link === link) this.#hooks.retire(worker)
  }

  #onLink(link: WorkerLink): void {
    if (this.#stop.signal.aborted) return link.kill()
    const worker = new WorkerHandle(
      link,
      this.#settings,
      this.#options.entryScript,
      this.#paces.of(link.info.place ?? link.info.host),
      (from, message, by) => this.#hooks.receive(from, message, by),
      (from, error) => {
        this.replace(from, error.message)
      },
    )
    worker.spare = this.#used() >= this.workerNum
    this.workers.add(worker)
    void link.closed.then((exit) => this.#onClosed(worker, exit))
  }

  /** Ends a worker that does not do what a worker does. */
  replace(worker: WorkerHandle, reason: string): void {
    this.#options.notice(`worker ${worker.name.id}: ${reason}; it is replaced`)
    worker.endFaulty(`the driver ended it: ${reason}`)
  }

  #onClosed(worker: WorkerHandle, exit: WorkerExit): void {
    if (worker.slot >= 0) this.open.remove(worker)
    this.workers.delete(worker)
    worker.state = 'closed'
    clearTimeout(worker.unseenTimer)
    this.useSpare()
    this.#hooks.closed(worker, worker.faulty === undefined ? exit : { ...exit, reason: worker.faulty })
    if (this.#failure && this.workers.size === 0) this.#hooks.failed(this.#failure)
  }

  #used(): number {
    let used = 0
    // A retiring worker does not count: its tasks may wait for sub-tasks that have to run in its successor.
    for (const worker of this.workers) if (!worker.spare && worker.state !== 'retiring') used++
    return used
  }

  /** Uses spare workers, as far as the limit allows. */
  useSpare(): void {
    let room = this.workerNum - this.#used()
    for (const worker of this.workers) {
      if (room <= 0) return
      if (!worker.spare || worker.state === 'retiring') continue
      room--
      worker.spare = false
      this.refresh(worker)
    }
  }

  #onFailed(error: Error): void {
    const failure = ManyworldsError.is(error)
      ? error
      : new ManyworldsError('ENGINE_FAILED', `the ${this.engineName} engine failed: ${error.message}`, { cause: error })
    if (![...this.workers].some((worker) => worker.state === 'ready')) return this.#hooks.failed(failure)
    // Live workers go on. The run fails when the last of them is gone.
    this.#failure = failure
    this.#options.notice(failure.message)
  }
}
