import { ManyworldsError } from '../errors.ts'
import { BLOBS, ONCE, SUB_TASKS, type WorkerMessage, type WorkerSettings } from '../protocol/messages.ts'
import { rememberSecrets, withoutKnownSecrets } from '../redaction/unattributed.ts'
import { addUsage, type Usage } from '../trajectory/usage.ts'
import { abortReason } from './abort-reason.ts'
import { AgentLoading } from './agent-loading.ts'
import { AgentTable } from './agents.ts'
import { BlobService } from './blob-service.ts'
import { Blobs } from './blobs.ts'
import { Fleet, type FleetOptions } from './fleet.ts'
import { Intake } from './intake.ts'
import { Leases, noteStart } from './leases.ts'
import { Losses } from './losses.ts'
import { onceService } from './once-service.ts'
import { Outcomes } from './outcomes.ts'
import { Pings } from './pings.ts'
import { Placing } from './placing.ts'
import { Profiles } from './profiles.ts'
import type { RunRecorder } from './recorder.ts'
import { RequestBroker } from './request-broker.ts'
import { Responses } from './responses.ts'
import { Run, type RunOptions, type RunSink } from './run.ts'
import { RunBlobs } from './run-blobs.ts'
import { RunEndings } from './run-endings.ts'
import type { Service } from './service.ts'
import { Shipping } from './shipping.ts'
import type { TaskSource } from './source.ts'
import { SpecialTasks } from './special-tasks.ts'
import { Stragglers } from './stragglers.ts'
import { SubTaskBroker } from './subtask-broker.ts'
import { exitText } from './suspects.ts'
import type { TaskEntry } from './task-entry.ts'
import type { Speaker, WorkerHandle } from './worker-handle.ts'

/** A worker that has not acknowledged a cancellation in this time has a blocked event loop and is killed. */
const CANCEL_SEEN_MS = 1000
/** The same for workers on other machines: allows for slow networks. */
const CANCEL_SEEN_ELSEWHERE_MS = 5000

/** If at least this share of a worker's tasks waits for a turn at a service, the worker gets no new tasks: they would wait too. */
const MOST_QUEUING = 0.25

/**
 * The center of the executor: takes tasks from the runs' sources, gives each to the least loaded worker with room, and turns
 * outcomes and losses into exactly one response per task.
 */
export class Dispatcher {
  readonly #notice: (line: string) => void
  readonly #fleet: Fleet
  readonly #agents = new AgentTable()
  readonly #shipping: Shipping | undefined
  readonly #loading: AgentLoading
  readonly #profiles = new Profiles()
  readonly #special: SpecialTasks
  readonly #stragglers: Stragglers
  readonly #subTasks: SubTaskBroker
  readonly #requests: RequestBroker
  readonly #responses: Responses
  readonly #intake: Intake
  readonly #endings: RunEndings
  readonly #leases: Leases
  readonly #outcomes: Outcomes
  readonly #losses: Losses
  readonly #placing: Placing
  readonly #blobs: Blobs
  readonly #pings: Pings
  readonly #saidWaiting = new Set<string>()
  readonly #closing = Promise.withResolvers<void>()
  #closed = false
  #failed = false

  constructor(options: FleetOptions) {
    this.#notice = options.notice
    this.#fleet = new Fleet(options, {
      receive: (worker, message, by) => this.#receive(worker, message, by),
      closed: (worker, exit) => {
        // First: a run may end with the worker.
        const lost = worker.expected ? undefined : exitText(exit)
        for (const { recorder } of this.#intake.runs) recorder?.left(worker.name, lost)
        this.#losses.closed(worker, exit)
        this.#loading.onClosed(worker, exit)
        this.#placing.soon()
      },
      retire: (worker) => this.#retire(worker),
      capacityGrew: () => this.#placing.soon(),
      failed: (error) => {
        this.#failed = true
        for (const run of [...this.#intake.runs]) this.failRun(run, error)
      },
    })
    this.#pings = new Pings(this.#fleet, this.#profiles, options.notice)
    this.#shipping = shippingFor(options)
    this.#blobs = new Blobs(options.engine, options.notice)
    const blobService = new BlobService(this.#blobs)
    const cancelSeenMs = this.#shipping ? CANCEL_SEEN_ELSEWHERE_MS : CANCEL_SEEN_MS
    this.#leases = new Leases(this.#fleet, this.#profiles, cancelSeenMs, {
      over: (lease) => {
        this.#requests.drop(lease)
        blobService.drop(lease)
      },
    })
    this.#loading = new AgentLoading(this.#agents, this.#fleet, this.#shipping, {
      failRun: (run, error) => this.failRun(run, error),
      refuse: (child, error) => this.#subTasks.refuseChild(child, error),
      notice: this.#notice,
    })
    this.#responses = new Responses({
      retry: (entry, afterMs) => this.#retry(entry, afterMs),
      failRun: (run, error) => this.failRun(run, error),
      childSettled: (child, response) => this.#subTasks.childSettled(child, response),
      cancelChildren: (entry) => this.#subTasks.cancelChildrenOf(entry),
      ended: (run) => this.#endings.endIfFinished(run),
      stackOf: (stack) => this.#shipping?.stackOf(stack) ?? stack,
    })
    this.#intake = new Intake({
      agents: this.#agents,
      loading: this.#loading,
      profiles: this.#profiles,
      responses: this.#responses,
      fleet: this.#fleet,
      finished: (run) => this.#endings.endIfFinished(run),
    })
    this.#stragglers = new Stragglers(this.#fleet, {
      runs: () => this.#intake.runs,
      lend: (worker, entry) => this.#leases.lend(worker, entry),
    })
    this.#special = new SpecialTasks(this.#fleet, {
      give: (worker, entry, group) => this.#leases.give(worker, entry, group),
      unmet: (entry) => this.#responses.unmet(entry, this.#fleet.engineName),
      waits: (entry) => this.#sayWaiting(entry),
    })
    this.#endings = new RunEndings({
      intake: this.#intake,
      fleet: this.#fleet,
      responses: this.#responses,
      loading: this.#loading,
      special: this.#special,
      profiles: this.#profiles,
      leases: this.#leases,
      cancelSeenMs,
    })
    this.#subTasks = new SubTaskBroker(this.#agents, {
      addEntry: (entry) => this.#intake.enqueue(entry, true),
      profileOf: (run, agent, timeoutMs, announce) => this.#profiles.of(run, agent, timeoutMs, announce),
      cancel: (entry) => this.#endings.cancel(entry, 'cancelled'),
      refOf: (ref, run) => (this.#shipping ? this.#shipping.refOf(ref, run.agents) : ref),
      arm: () => this.#placing.soon(),
    })
    this.#outcomes = new Outcomes(this.#leases, this.#responses, { overBudget: (run) => this.#overBudget(run) })
    this.#losses = new Losses({
      leases: this.#leases,
      outcomes: this.#outcomes,
      responses: this.#responses,
      special: this.#special,
    })
    this.#placing = new Placing({
      fleet: this.#fleet,
      intake: this.#intake,
      leases: this.#leases,
      loading: this.#loading,
      special: this.#special,
      stragglers: this.#stragglers,
    })
    const always = new Map<string, Service>([
      [SUB_TASKS, this.#subTasks],
      [ONCE, onceService],
      [BLOBS, blobService],
    ])
    this.#requests = new RequestBroker(always, {
      waits: (lease) => {
        this.#leases.waits(lease)
        this.#placing.soon()
      },
      goesOn: (lease) => this.#leases.goesOn(lease),
      keepOnly: (lease) => this.#leases.keepOnly(lease),
      turnCame: (worker) => {
        if (worker.isHeldUp) this.#onHungry(worker)
      },
    })
  }

  /** False once the engine has failed for good: the next run starts anew. */
  get usable(): boolean {
    return !this.#closed && !this.#failed
  }

  /** Resolves when shutdown begins. */
  get closing(): Promise<void> {
    return this.#closing.promise
  }

  /** Whether `reconfigure` can give it more workers. */
  get reshapable(): boolean {
    return this.#fleet.scalable
  }

  /** Whether the workers' handles keep this process alive. By default they do while a run is open. */
  keepAlive(alive: boolean): void {
    this.#fleet.keepAlive(alive)
  }

  /** Changes the number of workers and the concurrency between runs. */
  reconfigure(workerNum: number, settings: WorkerSettings): void {
    this.#fleet.reconfigure(workerNum, settings)
  }

  /** Begins a run. Its responses go to the sink. */
  open(options: RunOptions, source: TaskSource, sink: RunSink, recorder?: RunRecorder): Run {
    const run = new Run(options, source, sink, recorder)
    this.#intake.runs.push(run)
    if (options.redactor) rememberSecrets(options.redactor)
    if (this.#intake.runs.length === 1) this.#fleet.keepAlive(true)
    source.open(
      () => this.wake(run),
      () => this.#fleet.room(),
    )
    if (options.budget?.isSpent) this.#endings.drain(run, 'budget')
    if (options.deadlineMs !== undefined)
      run.deadlineTimer = setTimeout(() => this.stopRun(run, 'deadline'), options.deadlineMs)
    this.#placing.peek(run)
    // A run without tasks is over already.
    if (run.over) return run
    const { signal } = options
    run.onAbort = () => {
      run.aborted = abortReason(signal!)
      this.stopRun(run, 'cancelled')
    }
    if (signal?.aborted) run.onAbort()
    else signal?.addEventListener('abort', run.onAbort, { once: true })
    if (!run.over) {
      this.#fleet.start(this.#placing.backlog(), options.runId)
      if (options.blobs) run.blobs = new RunBlobs(this.#blobs, options.blobs)
    }
    this.#placing.soon()
    return run
  }

  /** The run's source has tasks again, or its sink has room again. */
  wake(run: Run): void {
    if (run.sourceState === 'waiting') run.sourceState = 'open'
    this.#placing.soon()
  }

  /** Starts nothing more of a run; what is queued or running is answered `cancelled`. */
  stopRun(run: Run, reason: 'cancelled' | 'deadline'): void {
    this.#endings.stop(run, reason)
  }

  /** Starts nothing more of a run. What is with a worker may finish in this time; the rest is answered `cancelled`. */
  drainRun(run: Run, graceMs: number): void {
    this.#endings.drain(run, 'cancelled', graceMs)
  }

  /** The run cannot go on: its caller gets the error at once, and its running tasks are stopped. */
  failRun(run: Run, error: Error): void {
    this.#endings.fail(run, error)
  }

  /** Tasks of a run that are with a worker. */
  running(run: Run): number {
    let running = 0
    const { runs } = this.#intake
    const isAlone = runs.length === 1 && runs[0] === run
    for (const { leases } of this.#fleet.workers) {
      if (isAlone) running += leases.size
      else for (const { entry } of leases.values()) if (entry.run === run) running++
    }
    return running
  }

  async shutdown(): Promise<void> {
    this.#closed = true
    this.#placing.stop()
    this.#pings.stop()
    this.#closing.resolve()
    for (const run of [...this.#intake.runs])
      this.failRun(run, new ManyworldsError('EXECUTOR_CLOSED', 'the executor was shut down'))
    this.#blobs.close()
    await this.#fleet.shutdown()
  }

  // ---- messages from workers

  #receive(worker: WorkerHandle, message: WorkerMessage, by: Speaker): void {
    switch (message.type) {
      case 'ready':
        if (!this.#fleet.welcome(worker, message)) return
        for (const { recorder } of this.#intake.runs) recorder?.joined(worker.name)
        this.#loading.onReady()
        return this.#placing.now()
      case 'done':
        if (this.#outcomes.receive(worker, message)) this.#placing.now()
        return
      case 'hungry':
        return this.#onHungry(worker)
      case 'loaded':
        this.#loading.onLoaded(worker, message.agent)
        return this.#placing.now()
      case 'load-failed':
        return this.#loading.onFailed(worker, {
          ...message,
          message: withoutKnownSecrets(message.message),
          stack: message.stack === undefined ? undefined : withoutKnownSecrets(message.stack),
        })
      case 'started':
        for (const id of message.leases) {
          const lease = worker.leases.get(id)
          if (lease) noteStart(lease)
        }
        return
      case 'running':
        for (const [id, ms] of message.tasks) {
          const lease = worker.leases.get(id) ?? worker.lost.get(id)
          if (!lease) continue
          noteStart(lease, ms)
          if (!lease.entry.run.over) lease.entry.run.recorder?.running(lease, ms)
        }
        return
      case 'may-start':
        return this.#onMayStart(worker, message.lease)
      case 'pong':
        return this.#pings.answered(worker)
      case 'preparing':
        worker.preparing = message.agents
        return
      case 'cancel-seen':
        return worker.cancelSeen(message.lease)
      case 'returned':
        worker.recalled()
        this.#losses.returned(worker, message.unstarted)
        worker.endIfEmpty()
        return this.#placing.now()
      case 'retire':
        this.#losses.returned(worker, message.unstarted)
        return this.#retire(worker)
      case 'exiting':
        worker.exiting ??= { lease: message.lease, error: message.error, runMs: message.runMs }
        return
      case 'stray':
        return this.#notice(
          // Indented: no line of it looks like one of the driver.
          `worker ${worker.name.id}: an error outside of any running task: ${withoutKnownSecrets(message.error.stack ?? message.error.message).replaceAll('\n', '\n  ')}`,
        )
      case 'ask':
      case 'unask':
      case 'more':
      case 'hand-in':
        return this.#requests.receive(worker, message, by)
      default:
        message satisfies never
    }
  }

  /** All of the worker's tasks are waiting. If many of them wait for a turn at a service, further tasks would wait there too. */
  #onHungry(worker: WorkerHandle): void {
    worker.isHeldUp = worker.queuing > 0 && worker.queuing >= worker.leases.size * MOST_QUEUING
    if (worker.isHeldUp) return
    worker.window.hungry()
    this.#fleet.refresh(worker)
    this.#placing.soon()
  }

  /** A task with `rerun: 'never'` asks for permission to start. The start is stored first, so that a later driver knows of it. */
  #onMayStart(worker: WorkerHandle, id: number): void {
    const lease = worker.leases.get(id)
    if (!lease) return
    if (lease.started) throw new RangeError(`lease ${id} may not start: its task has started`)
    const go = () => {
      if (worker.leases.get(id) !== lease) return
      // From here on the task may run. The worker's own report of that could be lost in a crash.
      noteStart(lease)
      worker.channel.control({ type: 'go', lease: id })
    }
    const { recorder } = lease.entry.run
    if (recorder) recorder.begin(lease.entry, go)
    else go()
  }

  /** Counts what was spent outside of the run's tasks, for example by a grader of the task with this index. */
  spend(run: Run, usage: Usage, index: number): void {
    const { budget } = run.options
    addUsage(run.usage, usage)
    budget?.spend(usage, index)
    if (budget?.isSpent && run.stopping === undefined && !run.over) this.#overBudget(run)
  }

  /** Starts nothing new, not even tasks that workers already hold; running tasks may finish. */
  #overBudget(run: Run): void {
    this.#notice(
      `run '${run.options.runId}' has reached its budget (${run.options.budget}): running tasks may finish, no others start`,
    )
    this.#endings.drain(run, 'budget')
    for (const worker of this.#fleet.workers) if (worker.state === 'ready') worker.recall()
  }

  /**
   * The worker is to be replaced, or its machine is going away: tasks it has not started are taken back, running tasks may finish.
   * It may have returned its tasks already; but a task can say that in its name, and leave out others.
   */
  #retire(worker: WorkerHandle): void {
    if (worker.state === 'ready') worker.recall()
    worker.retire()
    this.#fleet.refresh(worker)
    this.#fleet.useSpare()
    this.#placing.soon()
  }

  /** Prints the notice once per set of labels, and only after the first worker has arrived. */
  #sayWaiting({ id, options }: TaskEntry): void {
    const labels = options.requires!.join(', ')
    if (this.#saidWaiting.has(labels) || this.#fleet.workers.size === 0) return
    this.#saidWaiting.add(labels)
    this.#notice(`task '${id}' and others like it wait for a worker with the labels ${labels}; no worker has them yet`)
  }

  #retry(entry: TaskEntry, afterMs: number | undefined): void {
    const { backoffMs, backoffMaxMs } = entry.run.options
    const backoff = Math.min(backoffMaxMs, backoffMs * 2 ** (entry.attempts - 1)) * (0.5 + Math.random() / 2)
    // Unfinished sub-tasks belong to the attempt that failed.
    this.#subTasks.cancelChildrenOf(entry)
    entry.children?.forget()
    entry.run.retrying.add(entry)
    entry.retryTimer = setTimeout(() => {
      entry.run.retrying.delete(entry)
      if (entry.alone) this.#special.runAlone(entry)
      else this.#intake.enqueue(entry, true)
      this.#placing.soon()
    }, afterMs ?? backoff)
  }
}

function shippingFor({ engine, bundle, entryScript, notice }: FleetOptions): Shipping | undefined {
  if (engine.publish === undefined) return undefined
  return new Shipping({ publish: engine.publish.bind(engine), bundle, entryScript, notice })
}
