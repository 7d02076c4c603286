import type { EngineEvents, Placement, RuntimeEngine, WorkerExit, WorkerLink } from '../engines/engine.ts'
import { ManyworldsError } from '../errors.ts'
import { CODEC } from '../protocol/codec.ts'
import {
  type ErrorItem,
  OUTCOME,
  PROTOCOL_VERSION,
  type Profile,
  type WorkerMessage,
  type WorkerSettings,
} from '../protocol/messages.ts'
import { packTask } from '../task-checks.ts'
import { type AgentState, AgentTable } from './agents.ts'
import { Entry, type EntryOptions, type Lease } from './entry.ts'
import { LoadBuckets } from './load-buckets.ts'
import { Responses } from './responses.ts'
import { Run, type RunOptions, type RunSink } from './run.ts'
import type { ReadyTask, TaskSource } from './source.ts'
import { SubTaskDesk } from './subtask-desk.ts'
import { crashError, judge } from './suspects.ts'
import { WorkerHandle } from './worker-handle.ts'

/** A worker that has not taken notice of a cancellation in this time has a blocked event loop, and is ended. */
const CANCEL_SEEN_MS = 1000
/** How long a worker may be idle while another has tasks it has not started. */
const RECALL_MS = 50
/** Workers that may fail to load an agent that another has loaded, before the run is given up. */
const LOAD_FAILURES = 3

export interface DispatcherOptions {
  readonly engine: RuntimeEngine
  readonly placement: Omit<Placement, 'workers'>
  readonly workerNum: number
  readonly settings: WorkerSettings
  /** The script that was started, where agents made by a factory may be found. */
  readonly entryScript: string | undefined
  readonly notice: (line: string) => void
}

/**
 * The heart: takes tasks from the sources of runs, gives them to the least loaded worker with room, and turns what
 * comes back, or does not, into exactly one response per task.
 */
export class Dispatcher {
  readonly #options: DispatcherOptions
  #workerNum: number
  #settings: WorkerSettings
  readonly #workers = new Set<WorkerHandle>()
  /** Workers that can take more. */
  readonly #open = new LoadBuckets<WorkerHandle>()
  readonly #dirty = new Set<WorkerHandle>()
  readonly #runs: Run[] = []
  #turn = 0
  readonly #agents = new AgentTable()
  readonly #profiles = new Map<number, Profile>()
  #nextProfile = 1
  #nextLease = 1
  /** Suspects of a crash, to be run by themselves; a group of one is the last word. */
  readonly #groups: Entry[][] = []
  /** Tasks that want a particular worker. */
  #picky: Entry[] = []
  readonly #desk: SubTaskDesk
  readonly #responses: Responses
  #started = false
  #wanted = 0
  #armed = false
  #recallTimer: NodeJS.Timeout | undefined
  #closed = false
  #failed = false
  readonly #stop = new AbortController()

  constructor(options: DispatcherOptions) {
    this.#options = options
    this.#workerNum = this.#capped(options.workerNum, options.settings)
    this.#settings = options.settings
    this.#responses = new Responses({
      retry: (entry) => this.#retry(entry),
      childSettled: (child, response) => this.#desk.childSettled(child, response),
      cancelChildren: (entry) => this.#desk.cancelChildrenOf(entry),
      ended: (run) => this.#endRunIfFinished(run),
    })
    this.#desk = new SubTaskDesk(this.#agents, {
      addEntry: (entry) => this.#enqueue(entry, true),
      profileOf: (run, agent, timeoutMs, announce) => this.#profileOf(run, agent, timeoutMs, announce),
      cancel: (entry) => this.#cancelEntry(entry, 'cancelled'),
      loadChanged: (worker, by) => this.#changeLoad(worker, by),
      arm: () => this.#arm(),
    })
  }

  /** False once the engine has failed for good: the next run starts anew. */
  get usable(): boolean {
    return !this.#closed && !this.#failed
  }

  get idle(): boolean {
    return this.#runs.length === 0
  }

  /** Whether `reconfigure` can give it more workers. */
  get reshapable(): boolean {
    return this.#options.engine.scale !== undefined
  }

  #capped(workerNum: number, { concurrency }: WorkerSettings): number {
    const { engine, notice } = this.#options
    const most = engine.maxWorkers ?? workerNum
    if (most < workerNum)
      notice(
        `${workerNum} workers were asked for and ${most} can be placed by the ${engine.name} engine; each runs up to ${concurrency} tasks at once`,
      )
    return Math.min(workerNum, most)
  }

  /** Between runs: another number of workers, another concurrency. Workers beyond the number stay, and are not used. */
  reconfigure(workerNum: number, settings: WorkerSettings): void {
    this.#workerNum = this.#capped(workerNum, settings)
    this.#settings = settings
    let used = 0
    for (const worker of this.#workers) {
      worker.spare = used++ >= this.#workerNum
      worker.reconfigure(settings)
      this.#changeLoad(worker, 0)
    }
  }

  /** Begins a run. Its responses go to the sink. */
  open(options: RunOptions, source: TaskSource, sink: RunSink): Run {
    const run = new Run(options, source, sink)
    this.#runs.push(run)
    if (this.#runs.length === 1) this.#options.engine.keepAlive?.(true)
    source.open(
      () => this.wake(run),
      () => this.#room(),
    )
    if (options.deadlineMs !== undefined)
      run.deadlineTimer = setTimeout(() => this.stopRun(run, 'deadline'), options.deadlineMs)
    this.#peek(run)
    if (options.signal?.aborted) this.stopRun(run, 'cancelled')
    else options.signal?.addEventListener('abort', () => this.stopRun(run, 'cancelled'), { once: true })
    if (!run.over) this.#startEngine()
    this.#arm()
    return run
  }

  /** The run's source has something, or its sink has room again. */
  wake(run: Run): void {
    if (run.sourceState === 'waiting') run.sourceState = 'open'
    this.#arm()
  }

  /** Starts nothing more of a run; what is queued or running is answered `cancelled`. */
  stopRun(run: Run, reason: 'cancelled' | 'deadline'): void {
    if (run.over || run.stopping !== undefined) return
    run.stopping = reason
    run.sourceState = 'ended'
    for (const ready of run.source.close()) this.#cancelEntry(this.#makeEntry(run, ready), reason)
    this.#forEachEntry(run, (entry) => this.#cancelEntry(entry, reason))
    this.#endRunIfFinished(run)
  }

  async shutdown(): Promise<void> {
    this.#closed = true
    this.#stop.abort()
    for (const run of [...this.#runs])
      this.#failRun(run, new ManyworldsError('EXECUTOR_CLOSED', 'the executor was shut down'))
    for (const worker of this.#workers) worker.expected = true
    if (!this.#started) return
    // Whoever waits for the end must not find that nothing keeps the process alive.
    this.#options.engine.keepAlive?.(true)
    await this.#options.engine.stop()
  }

  // ---- workers

  #startEngine(): void {
    if (this.#started) return
    this.#started = true
    const { engine, placement } = this.#options
    this.#wanted = engine.scale ? Math.min(this.#workerNum, Math.max(1, this.#backlog())) : this.#workerNum
    const events: EngineEvents = {
      link: (link) => this.#onLink(link),
      failed: (error) => this.#onEngineFailed(error),
      notice: this.#options.notice,
    }
    engine
      .start({ ...placement, workers: this.#wanted }, events, this.#stop.signal)
      .catch((error: Error) => this.#onEngineFailed(error))
  }

  #onLink(link: WorkerLink): void {
    if (this.#closed) return link.kill()
    const worker = new WorkerHandle(
      link,
      this.#settings,
      this.#options.entryScript,
      (from, message) => this.#receive(from, message),
      (from, error) => {
        this.#options.notice(`worker ${from.name.id}: ${error.message}; it is replaced`)
        from.link.kill()
      },
    )
    worker.spare = this.#used() >= this.#workerNum
    this.#workers.add(worker)
    worker.greet()
    void link.closed.then((exit) => this.#onClosed(worker, exit))
  }

  #used(): number {
    let used = 0
    for (const worker of this.#workers) if (!worker.spare) used++
    return used
  }

  #useSpare(): void {
    if (this.#used() >= this.#workerNum) return
    for (const worker of this.#workers) {
      if (!worker.spare) continue
      worker.spare = false
      return this.#changeLoad(worker, 0)
    }
  }

  #onEngineFailed(error: Error): void {
    const failure = ManyworldsError.is(error)
      ? error
      : new ManyworldsError('ENGINE_FAILED', `the ${this.#options.engine.name} engine failed: ${error.message}`, {
          cause: error,
        })
    if ([...this.#workers].some((worker) => worker.state === 'ready')) return this.#options.notice(failure.message)
    this.#failed = true
    for (const run of [...this.#runs]) this.#failRun(run, failure)
  }

  #receive(worker: WorkerHandle, message: WorkerMessage): void {
    switch (message.type) {
      case 'ready':
        return this.#onReady(worker, message)
      case 'done':
        for (const [lease, steps, logs] of message.emits) this.#onEmit(worker, lease, steps, logs)
        return this.#onOutcomes(worker, message)
      case 'hungry':
        worker.window.hungry()
        this.#changeLoad(worker, 0)
        return this.#dispatch()
      case 'loaded':
        return this.#onLoaded(message.agent)
      case 'load-failed':
        return this.#onLoadFailed(worker, message)
      case 'started':
        for (const id of message.leases) {
          const lease = worker.leases.get(id)
          if (lease) lease.started = true
        }
        return
      case 'cancel-seen':
        worker.unseen.delete(message.lease)
        return
      case 'returned':
        this.#takeBack(worker, message.unstarted)
        return this.#dispatch()
      case 'retire':
        this.#takeBack(worker, message.unstarted)
        worker.retire()
        this.#changeLoad(worker, 0)
        return this.#arm()
      case 'fate':
        worker.fate = { lease: message.lease, error: message.error }
        return
      case 'stray':
        return this.#options.notice(
          `worker ${worker.name.id}: an error that belongs to no running task: ${message.error.stack ?? message.error.message}`,
        )
      case 'subtasks':
        return this.#desk.onRequest(worker, message)
    }
  }

  #onReady(worker: WorkerHandle, { protocol, codec, node }: Extract<WorkerMessage, { type: 'ready' }>): void {
    if (protocol !== PROTOCOL_VERSION || codec !== CODEC) {
      worker.end()
      const error = `worker ${worker.name.id} on ${worker.name.host} speaks protocol ${protocol}, ${codec} (Node ${node}); this driver speaks ${PROTOCOL_VERSION}, ${CODEC} (Node ${process.version})`
      return this.#onEngineFailed(new ManyworldsError('PROTOCOL_ERROR', `${error}; install the same versions`))
    }
    worker.state = 'ready'
    this.#changeLoad(worker, 0)
    this.#probeAgents(worker)
    this.#dispatch()
  }

  /** Tasks that a worker has not started, and now will not. */
  #takeBack(worker: WorkerHandle, unstarted: readonly number[]): void {
    const back: Lease[] = []
    for (const id of unstarted) {
      const lease = worker.leases.get(id)
      if (lease) back.push(lease)
    }
    for (const lease of back) {
      worker.leases.delete(lease.id)
      this.#changeLoad(worker, -1)
    }
    this.#giveBack(back)
  }

  #onClosed(worker: WorkerHandle, exit: WorkerExit): void {
    if (worker.slot >= 0) this.#open.remove(worker)
    this.#workers.delete(worker)
    this.#dirty.delete(worker)
    worker.state = 'closed'
    clearTimeout(worker.unseenTimer)
    if (worker.leases.size > 0) {
      const verdict = judge(worker, exit)
      worker.leases.clear()
      if (verdict.guilty) this.#charge(verdict.guilty.entry, verdict.status, verdict.error ?? crashError(exit))
      const suspects = verdict.suspects.filter((lease) => this.#mayRunAgain(lease, exit)).map((lease) => lease.entry)
      if (suspects.length > 0) {
        const half = Math.ceil(suspects.length / 2)
        for (const group of [suspects.slice(0, half), suspects.slice(half)])
          if (group.length > 0) this.#groups.push(group)
      }
      this.#giveBack(verdict.innocent.filter((lease) => this.#mayRunAgain(lease, exit)))
    }
    for (const agent of this.#agents) {
      if (agent.probedBy !== worker) continue
      agent.probedBy = undefined
      if (!worker.expected && ++agent.failures >= LOAD_FAILURES) this.#giveUpAgent(agent, exit)
      else this.#probeAgain(agent)
    }
    this.#useSpare()
    this.#arm()
  }

  /** Settles what must not run a second time, or is being cancelled anyway. */
  #mayRunAgain(lease: Lease, exit: WorkerExit): boolean {
    const { entry } = lease
    entry.lease = undefined
    if (entry.cancelling !== undefined) {
      this.#responses.cancelled(entry)
      return false
    }
    if (!entry.options.neverRerun || !lease.started) return true
    entry.attempts++
    this.#responses.fail(entry, 'crashed', crashError(exit), 0)
    return false
  }

  #giveBack(leases: readonly Lease[]): void {
    const byRun = new Map<Run, Entry[]>()
    for (const { entry } of leases) {
      entry.lease = undefined
      const entries = byRun.get(entry.run)
      if (entries) entries.push(entry)
      else byRun.set(entry.run, [entry])
    }
    for (const [run, entries] of byRun) run.urgent.unshift(entries)
  }

  // ---- agents

  #hold(entry: Entry): void {
    entry.agent.held.push(entry)
    this.#probeAgain(entry.agent)
  }

  #probeAgain(agent: AgentState): void {
    if (agent.held.length === 0) return
    for (const worker of this.#workers) if (worker.state === 'ready') return this.#probe(agent, worker)
  }

  #probeAgents(worker: WorkerHandle): void {
    for (const agent of this.#agents) if (agent.held.length > 0) this.#probe(agent, worker)
  }

  #probe(agent: AgentState, worker: WorkerHandle): void {
    if (agent.probedBy !== undefined) return
    agent.probedBy = worker
    worker.introduce(agent)
  }

  /** Worker after worker ended while it imported the agent's module. */
  #giveUpAgent(agent: AgentState, exit: WorkerExit): void {
    const { name, module } = agent.ref
    const error = new ManyworldsError(
      'AGENT_LOAD_FAILED',
      `workers end while they import ${module} to find agent '${name}' (${LOAD_FAILURES} times in a row): ${crashError(exit).message}`,
    )
    agent.failures = 0
    for (const run of new Set(agent.held.splice(0).map((entry) => entry.run))) this.#failRun(run, error)
  }

  #onLoaded(key: number): void {
    const agent = this.#agents.byKey(key)
    if (agent === undefined || agent.loaded) return
    agent.loaded = true
    agent.failures = 0
    for (const entry of agent.held.splice(0))
      if (!entry.settled) (entry.parent ? entry.run.urgent : entry.run.ready).push(entry)
    this.#dispatch()
  }

  #onLoadFailed(
    worker: WorkerHandle,
    { agent: key, code, message, stack }: Extract<WorkerMessage, { type: 'load-failed' }>,
  ): void {
    const agent = this.#agents.byKey(key)
    if (agent === undefined) return
    if (agent.loaded && ++agent.failures < LOAD_FAILURES) return worker.end()
    const error = new ManyworldsError(code, message)
    if (stack !== undefined) error.cause = Object.assign(new Error(message), { stack })
    const runs = new Set(agent.held.map((entry) => entry.run))
    for (const lease of worker.leases.values()) if (lease.entry.agent === agent) runs.add(lease.entry.run)
    for (const run of runs) this.#failRun(run, error)
    agent.held.length = 0
    // A worker remembers what it has imported; the next run gets a new one, which reads the mended file.
    agent.probedBy = undefined
    worker.retire()
    this.#changeLoad(worker, 0)
  }

  // ---- tasks

  #arm(): void {
    if (this.#armed) return
    this.#armed = true
    setImmediate(() => {
      this.#armed = false
      this.#dispatch()
    })
  }

  #dispatch(): void {
    if (this.#closed) return
    if (this.#groups.length > 0) this.#placeSuspects()
    if (this.#picky.length > 0) this.#placePicky()
    for (let worker = this.#open.least(); worker; worker = this.#open.least()) {
      const entry = this.#next()
      if (!entry) break
      if (entry.options.requires === undefined) this.#give(worker, entry)
      else this.#picky.push(entry)
    }
    this.#flush()
    if (this.#open.size === 0) this.#grow()
    else if (this.#open.size < this.#workers.size) this.#recallSoon()
  }

  /** Some workers have nothing to do. If others still hold tasks that they have not started, those are fetched back. */
  #recallSoon(): void {
    if (this.#recallTimer !== undefined || this.#runs.length === 0) return
    this.#recallTimer = setTimeout(() => {
      this.#recallTimer = undefined
      if (this.#open.least()?.load !== 0) return
      for (const worker of this.#workers)
        if (worker.state === 'ready' && !worker.careful && worker.window.overfull(worker.load))
          worker.channel.control({ type: 'recall' })
    }, RECALL_MS)
    this.#recallTimer.unref()
  }

  #flush(): void {
    for (const worker of this.#dirty) worker.flush()
    this.#dirty.clear()
  }

  /** The next task that may run, a task from each run in turn. */
  #next(): Entry | undefined {
    for (let tried = 0; tried < this.#runs.length; tried++) {
      const run = this.#runs[this.#turn++ % this.#runs.length]!
      for (;;) {
        const entry = run.urgent.shift() ?? run.ready.shift() ?? this.#pull(run)
        if (entry === undefined) break
        if (!entry.settled) return entry
      }
    }
    return undefined
  }

  /** Reads one task whose agent is loaded; those of other agents are held meanwhile. */
  #pull(run: Run): Entry | undefined {
    let held = 0
    while (run.sourceState === 'open' && !run.sink.full()) {
      const entry = this.#read(run)
      if (entry === undefined) return undefined
      if (entry.agent.loaded) return entry
      this.#hold(entry)
      if (++held >= this.#room()) return undefined
    }
    return undefined
  }

  #read(run: Run): Entry | undefined {
    try {
      for (;;) {
        const item = run.source.pull()
        if (typeof item === 'string') {
          run.sourceState = item === 'wait' ? 'waiting' : 'ended'
          break
        }
        const entry = this.#makeEntry(run, item)
        if (item.skip === undefined) return entry
        this.#responses.skipped(entry, item.skip)
      }
    } catch (error) {
      // Nothing more can be read; what was read is finished and answered before the error is passed on.
      run.sourceState = 'ended'
      run.error = error as Error
      run.source.close()
    }
    this.#endRunIfFinished(run)
    return undefined
  }

  #makeEntry(run: Run, { index, id, task, packed, previous, results }: ReadyTask): Entry {
    const agent = this.#agents.of(task.agent)
    const ready = packed ?? packTask(task, index)
    const neverRerun = task.rerun === 'never'
    const maxAttempts = task.maxAttempts ?? run.options.maxAttempts
    const requires = task.requires !== undefined && task.requires.length > 0 ? task.requires : undefined
    const { info } = ready
    const ordinary = info === undefined && previous === undefined && results === undefined && requires === undefined
    const options: EntryOptions =
      ordinary && !neverRerun && maxAttempts === run.usualOptions.maxAttempts
        ? run.usualOptions
        : { maxAttempts, neverRerun, requires, info, previous, results }
    const profile = this.#profileOf(run, agent, task.timeoutMs ?? run.options.timeoutMs, neverRerun)
    run.live++
    return new Entry(run, index, id, agent, profile, ready, options)
  }

  #profileOf(run: Run, agent: AgentState, timeoutMs: number | undefined, announce: boolean): number {
    const last = run.lastProfile
    if (last && last.agent === agent.key && last.timeoutMs === timeoutMs && last.announce === announce) return last.key
    const known = run.profiles.find((key) => {
      const profile = this.#profiles.get(key)!
      return profile.agent === agent.key && profile.timeoutMs === timeoutMs && profile.announce === announce
    })
    const key = known ?? this.#nextProfile++
    if (known === undefined) {
      this.#profiles.set(key, {
        agent: agent.key,
        runId: run.options.runId,
        seed: run.options.seed,
        timeoutMs,
        announce,
      })
      run.profiles.push(key)
    }
    run.lastProfile = { key, agent: agent.key, timeoutMs, announce }
    return key
  }

  #enqueue(entry: Entry, urgent: boolean): void {
    if (!entry.agent.loaded) this.#hold(entry)
    else (urgent ? entry.run.urgent : entry.run.ready).push(entry)
  }

  #give(worker: WorkerHandle, entry: Entry): void {
    const lease: Lease = { id: this.#nextLease++, entry, worker, started: false, waitingCalls: 0 }
    entry.lease = lease
    entry.worker = worker.name
    entry.steps = undefined
    entry.logs = undefined
    worker.leases.set(lease.id, lease)
    if (worker.load === 0) worker.window.wokeUp(performance.now())
    this.#changeLoad(worker, 1)
    worker.add(lease, this.#profiles.get(entry.profile)!)
    this.#dirty.add(worker)
  }

  #changeLoad(worker: WorkerHandle, by: number): void {
    if (worker.slot >= 0) this.#open.remove(worker)
    worker.load += by
    if (worker.careful && worker.load === 0) worker.careful = false
    if (
      worker.state === 'ready' &&
      !worker.spare &&
      !worker.reserved &&
      !worker.careful &&
      worker.load < worker.window.limit
    )
      this.#open.add(worker)
  }

  #onEmit(worker: WorkerHandle, id: number, steps: unknown[], logs: string[]): void {
    const entry = worker.leases.get(id)?.entry
    if (!entry) return
    if (steps.length > 0) entry.steps = entry.steps === undefined ? steps : entry.steps.concat(steps)
    if (logs.length === 0) return
    entry.logs = entry.logs === undefined ? logs : entry.logs.concat(logs)
    if (entry.run.options.showLogs) for (const line of logs) process.stderr.write(`[${entry.id}] ${line}\n`)
  }

  #onOutcomes(worker: WorkerHandle, { outcomes }: Extract<WorkerMessage, { type: 'done' }>): void {
    if (outcomes.length === 0) return
    const now = performance.now()
    let released = 0
    let ranMs = 0
    for (const [id, status, value, runUs] of outcomes) {
      const lease = worker.leases.get(id)
      // Late: its lease was closed, by a crash that was presumed or by a cancellation. The first answer stands.
      if (!lease) continue
      worker.leases.delete(id)
      if (lease.waitingCalls === 0) released++
      const runMs = runUs / 1000
      ranMs += runMs
      const { entry } = lease
      entry.lease = undefined
      if (status === OUTCOME.success) this.#responses.succeed(entry, value, runMs, now)
      else this.#onFailure(entry, status, value as ErrorItem, runMs)
    }
    worker.window.done(outcomes.length, ranMs, now)
    this.#changeLoad(worker, -released)
    worker.endIfEmpty()
    this.#dispatch()
  }

  #onFailure(entry: Entry, status: number, error: ErrorItem, runMs: number): void {
    if (status === OUTCOME.cancelled) this.#responses.cancelled(entry, runMs)
    else this.#charge(entry, status === OUTCOME.timeout ? 'timeout' : 'failed', this.#responses.errorOf(error), runMs)
  }

  /** An attempt that counts has failed. */
  #charge(entry: Entry, status: 'failed' | 'timeout' | 'crashed', error: ErrorItem, runMs = 0): void {
    entry.lease = undefined
    entry.attempts++
    if (status === 'crashed' || error.code === 'TASK_BLOCKED_WORKER') entry.alone = true
    this.#responses.fail(entry, status, error, runMs)
  }

  #retry(entry: Entry): void {
    const { backoffMs, backoffMaxMs } = entry.run.options
    const delay = Math.min(backoffMaxMs, backoffMs * 2 ** (entry.attempts - 1)) * (0.5 + Math.random() / 2)
    entry.children?.forget()
    entry.run.retrying.add(entry)
    entry.retryTimer = setTimeout(() => {
      entry.run.retrying.delete(entry)
      if (entry.alone) this.#groups.push([entry])
      else this.#enqueue(entry, true)
      this.#arm()
    }, delay)
  }

  // ---- tasks that need a worker of their own

  #placeSuspects(): void {
    let reserved = 0
    const most = Math.max(1, this.#workers.size >> 1)
    for (const worker of this.#workers) {
      if (this.#groups.length === 0) {
        worker.reserved = false
        this.#changeLoad(worker, 0)
        continue
      }
      if (worker.state !== 'ready' || worker.spare || worker.careful) continue
      if (worker.load === 0) this.#giveGroup(worker)
      else if (worker.reserved || reserved < most) {
        reserved++
        worker.reserved = true
        this.#changeLoad(worker, 0)
      }
    }
  }

  #giveGroup(worker: WorkerHandle): void {
    const group = this.#groups.shift()!.filter((entry) => !entry.settled)
    worker.reserved = false
    if (group.length === 0) return this.#changeLoad(worker, 0)
    worker.flush()
    worker.careful = true
    for (const entry of group) this.#give(worker, entry)
    worker.flush()
  }

  #placePicky(): void {
    const waiting = this.#picky
    this.#picky = []
    for (const entry of waiting) {
      if (entry.settled) continue
      const required = entry.options.requires!
      const able = [...this.#workers].filter((worker) => worker.hasLabels(required))
      const free = able.filter((worker) => worker.slot >= 0).sort((a, b) => a.load - b.load)[0]
      if (free) this.#give(free, entry)
      else if (
        able.length > 0 ||
        this.#wanted < this.#workerNum ||
        [...this.#workers].some((worker) => worker.state === 'starting')
      )
        this.#picky.push(entry)
      else {
        const message = `no worker of the ${this.#options.engine.name} engine has the labels that this task requires: ${required.join(', ')}`
        this.#responses.fail(
          entry,
          'failed',
          { code: 'REQUIRES_UNMET', name: 'TaskError', message, stack: undefined },
          0,
          true,
        )
      }
    }
  }

  // ---- capacity

  /** How many tasks the workers could hold. */
  #room(): number {
    let room = 0
    for (const worker of this.#workers) room += worker.window.limit
    return Math.max(2, room, this.#workerNum)
  }

  #backlog(): number {
    let backlog = this.#groups.length
    for (const run of this.#runs) backlog += run.urgent.length + run.ready.length
    for (const agent of this.#agents) backlog += agent.held.length
    return backlog
  }

  /** Reads a few tasks, to see how many workers are worth starting and which agents they need. */
  #peek(run: Run): void {
    while (this.#backlog() < this.#workerNum && run.sourceState === 'open') {
      const entry = this.#read(run)
      if (entry) this.#enqueue(entry, false)
    }
  }

  /** All workers are busy: start more, as far as there is work for them. */
  #grow(): void {
    const { engine } = this.#options
    const workerNum = this.#workerNum
    if (!this.#started || this.#wanted >= workerNum || !engine.scale) return
    for (const run of this.#runs) this.#peek(run)
    const wanted = Math.min(workerNum, this.#wanted + this.#backlog())
    if (wanted === this.#wanted) return
    this.#wanted = wanted
    engine.scale(wanted).catch((error: Error) => this.#onEngineFailed(error))
  }

  // ---- ending

  #cancelEntry(entry: Entry, reason: 'cancelled' | 'deadline'): void {
    if (entry.settled) return
    entry.cancelling = reason
    clearTimeout(entry.retryTimer)
    entry.run.retrying.delete(entry)
    const { lease } = entry
    if (!lease) return this.#responses.cancelled(entry)
    const { worker } = lease
    worker.flush()
    worker.channel.control({ type: 'cancel', lease: lease.id, reason })
    worker.unseen.add(lease.id)
    worker.unseenTimer ??= setTimeout(() => {
      worker.unseenTimer = undefined
      if (worker.unseen.size > 0) worker.end()
    }, CANCEL_SEEN_MS)
  }

  #forEachEntry(run: Run, visit: (entry: Entry) => void): void {
    const entries: Entry[] = [...run.urgent.drain(), ...run.ready.drain(), ...run.retrying]
    for (const agent of this.#agents) entries.push(...agent.held.filter((entry) => entry.run === run))
    for (const group of this.#groups) entries.push(...group.filter((entry) => entry.run === run))
    entries.push(...this.#picky.filter((entry) => entry.run === run))
    for (const worker of this.#workers)
      for (const { entry } of worker.leases.values()) if (entry.run === run) entries.push(entry)
    entries.forEach(visit)
  }

  /** The run cannot go on: its caller is told at once, and what it had under way is stopped. */
  #failRun(run: Run, error: Error): void {
    if (run.over) return
    run.stopping = 'failed'
    run.error = error
    run.sourceState = 'ended'
    run.source.close()
    run.over = true
    this.#forEachEntry(run, (entry) => this.#cancelEntry(entry, 'cancelled'))
    this.#endRun(run)
  }

  #endRunIfFinished(run: Run): void {
    if (!run.over && run.finished) {
      run.over = true
      this.#endRun(run)
    }
  }

  #endRun(run: Run): void {
    clearTimeout(run.deadlineTimer)
    this.#runs.splice(this.#runs.indexOf(run), 1)
    for (const key of run.profiles) this.#profiles.delete(key)
    for (const worker of this.#workers) worker.forget(run.profiles)
    if (this.#runs.length === 0) this.#options.engine.keepAlive?.(false)
    run.sink.end(run.error)
  }
}
