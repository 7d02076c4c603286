import { AsyncLocalStorage } from 'node:async_hooks'
import type { RunnableDefinition } from '../agent.ts'
import { Deque } from '../deque.ts'
import { ModelTransport } from '../models/worker/transport.ts'
import type { Channel } from '../protocol/channel.ts'
import {
  type DriverMessage,
  OUTCOME,
  type Outcome,
  type Profile,
  type TaskItem,
  type WorkerMessage,
  type WorkerSettings,
} from '../protocol/messages.ts'
import { unpack } from '../protocol/pack.ts'
import { WorkerBlobs } from './blobs.ts'
import { CarefulStarts } from './careful-starts.ts'
import { TaskContext } from './context.ts'
import { Endings } from './endings.ts'
import { Hunger } from './hunger.ts'
import { LoadedAgents } from './loaded-agents.ts'
import { LongTasks } from './long-tasks.ts'
import { Outbox } from './outbox.ts'
import { Recycling } from './recycling.ts'
import { Requests } from './requests.ts'
import { SetupBlobs } from './setup-blobs.ts'
import type { SideThread } from './side.ts'
import { Slots } from './slots.ts'
import { SubTasks } from './subtasks.ts'
import type { Timeouts } from './timeouts.ts'
import { Waiting } from './waiting.ts'

/** How long tasks are started before I/O gets its turn. */
const SLICE_MS = 1
/** Cancellations of unknown tasks to remember. Most are of tasks that have just ended, so the oldest can be forgotten. */
const MAX_CANCELLED = 65_536

/** Runs many tasks at once: starts given tasks in order as slots become free. */
export class TaskRunner {
  readonly agents: LoadedAgents
  readonly profiles = new Map<number, Profile>()
  /** Tasks that are running, by lease. */
  readonly live = new Map<number, TaskContext>()
  readonly endings: Endings
  /** Steps, printed lines and outcomes on their way to the driver. */
  readonly outbox: Outbox
  readonly requests: Requests
  /** Makes requests also while the event loop is blocked. */
  readonly side: SideThread
  readonly subTasks: SubTasks
  readonly blobs: WorkerBlobs
  readonly models: ModelTransport
  readonly recycling: Recycling
  readonly #current = new AsyncLocalStorage<TaskContext>()
  readonly #channel: Channel<WorkerMessage, DriverMessage>
  readonly #timeouts: Timeouts
  readonly #slots = new Slots()
  readonly #starts: CarefulStarts
  readonly #longTasks: LongTasks
  readonly #hunger: Hunger
  readonly #waiting: Waiting
  /** Tasks that are not started. */
  readonly #queue = new Deque<TaskItem>()
  /** Tasks that were cancelled before they arrived: a `cancel` overtakes a large `run`. */
  readonly #cancelled = new Map<number, 'cancelled' | 'deadline'>()
  #settings: WorkerSettings = {
    concurrency: 1,
    recycleAfterTasks: undefined,
    recycleAboveMb: undefined,
    withheldEnv: [],
  }
  #guarded = false
  #armed = false
  #pumping = false
  #turnBegan = 0

  constructor(
    channel: Channel<WorkerMessage, DriverMessage>,
    timeouts: (runner: TaskRunner) => Timeouts,
    leaving: AbortSignal,
    side: SideThread,
    blobFolder: string | undefined,
  ) {
    this.side = side
    this.#channel = channel
    const flush = () => this.outbox.flush()
    this.outbox = new Outbox(
      channel,
      () => this.#arm(),
      () => this.#pump(),
    )
    this.#timeouts = timeouts(this)
    this.#starts = new CarefulStarts(channel, this.#slots, flush)
    this.#longTasks = new LongTasks(this.live, (tasks) => channel.post({ type: 'running', tasks }))
    this.#hunger = new Hunger(this.#slots, () => channel.control({ type: 'hungry' }))
    this.recycling = new Recycling((reason) => {
      flush()
      channel.post({ type: 'retire', reason, unstarted: this.#takeUnstarted() })
    })
    this.#waiting = new Waiting(this.#slots, this.#timeouts, (task) => this.#release(task))
    this.requests = new Requests(channel, this.#waiting, flush)
    this.subTasks = new SubTasks(this.requests)
    this.blobs = new WorkerBlobs(this.requests, blobFolder)
    this.models = new ModelTransport(this.requests)
    this.endings = new Endings({
      live: this.live,
      slots: this.#slots,
      recycling: this.recycling,
      requests: this.requests,
      models: this.models,
      blobs: this.blobs,
      side,
      timeouts: this.#timeouts,
      outcome: (outcome, size) => this.#outcome(outcome, size),
      flush,
      release: (task) => this.#release(task),
      withheldEnv: () => this.#settings.withheldEnv,
    })
    this.agents = new LoadedAgents(leaving, {
      ready: (items) => {
        // These tasks start only now; until then it was unknown whether there is room for more.
        if (items.length > 0) this.#hunger.fed()
        this.#startFirst(items)
      },
      failed: (items, { name }, error) => {
        const value = this.endings.error('SETUP_FAILED', error, `setup of agent '${name}' failed: `)
        for (const item of items) this.#outcome([item[0], OUTCOME.failed, value, 0], 0)
      },
      preparing: (agents) => channel.control({ type: 'preparing', agents }),
      blobsFor: (waiting) => new SetupBlobs(this.blobs, this.requests, waiting),
    })
  }

  readonly current = (): TaskContext | undefined => this.#current.getStore()

  // ---- messages from the driver

  configure(settings: WorkerSettings): void {
    this.#settings = settings
    this.#slots.total = settings.concurrency
  }

  /** The watchdog runs, so tasks may start. Before that, a blocked event loop could outlive its driver. */
  open(): void {
    this.#guarded = true
    this.#pump()
  }

  take(tasks: TaskItem[], suspects: boolean): void {
    this.#starts.suspects = suspects
    for (const task of tasks) {
      const cancelled = this.#cancelled.get(task[0])
      if (cancelled === undefined) this.#queue.push(task)
      else {
        this.#cancelled.delete(task[0])
        this.endings.cancelUnstarted(task[0], cancelled)
      }
    }
    this.#hunger.fed()
    this.#turnBegan = performance.now()
    this.#pump()
  }

  /** The answer to `may-start`. */
  go(lease: number): void {
    const item = this.#starts.go(lease)
    if (item) this.#startFirst([item])
  }

  cancel(lease: number, reason: 'cancelled' | 'deadline'): void {
    this.#channel.control({ type: 'cancel-seen', lease })
    const task = this.live.get(lease)
    if (task) return this.endings.cancel(task, reason)
    const unstarted =
      this.#starts.stopAsking(lease) !== undefined ||
      this.#queue.remove((item) => item[0] === lease) ||
      this.agents.remove(lease)
    if (!unstarted) {
      this.#cancelled.set(lease, reason)
      if (this.#cancelled.size > MAX_CANCELLED) this.#cancelled.delete(this.#cancelled.keys().next().value!)
      return
    }
    this.endings.cancelUnstarted(lease, reason)
    this.#pump()
  }

  /** Other workers are idle: returns the tasks that are not started. */
  recall(): void {
    this.#channel.control({ type: 'returned', unstarted: this.#takeUnstarted() })
  }

  // ---- starting tasks

  #startFirst(items: readonly TaskItem[]): void {
    this.#queue.unshift(items)
    this.#pump()
  }

  /** Starts tasks for at most one time slice. */
  #pump(): void {
    // A task that ends at once frees its slot inside this loop, which then continues.
    if (this.#pumping || !this.#guarded || this.outbox.room) return
    this.#pumping = true
    let now = performance.now()
    while (this.#queue.length > 0 && this.#slots.isFree && now - this.#turnBegan < SLICE_MS) {
      const item = this.#queue.shift()!
      if (!this.#start(item, now)) {
        this.#queue.unshift([item])
        break
      }
      now = performance.now()
    }
    this.#pumping = false
    // With all slots taken there is nothing to do until one is free: another turn would spin.
    if (this.#queue.length === 0 || this.#slots.isFree) this.#arm()
  }

  /** Starts a task. False: it cannot start now. */
  #start(item: TaskItem, now: number): boolean {
    const profile = this.profiles.get(item[1])!
    const agent = this.agents.get(profile.agent)
    const { definition } = agent
    if (definition === undefined || (!agent.setUp && definition.setup)) {
      // A setup may crash, too: the driver must know for which task it was made.
      const isAnnounced = !this.#starts.suspects || definition === undefined || this.#starts.announceSetup(item)
      if (isAnnounced) this.agents.wait(agent, item)
      return isAnnounced
    }
    if (profile.announce || this.#starts.suspects) {
      const may = this.#starts.announce(item, profile.announce)
      if (may !== 'now') return may === 'asking'
    }
    this.#starts.starts(item[0])
    const task = new TaskContext(this, item, profile, agent.params, agent.state, now)
    this.live.set(task.lease, task)
    this.#slots.taken++
    if (profile.timeoutMs !== undefined) this.#timeouts.watch(task, profile.timeoutMs)
    this.#longTasks.lookSoon()
    let result: unknown
    try {
      result = this.#current.run(task, runAgent, definition, unpack(item[3]), task)
    } catch (error) {
      this.endings.finish(task, OUTCOME.failed, error)
      return true
    }
    if (typeof result === 'object' && result !== null && typeof (result as PromiseLike<unknown>).then === 'function')
      (result as PromiseLike<unknown>).then(
        (answer) => this.endings.finish(task, OUTCOME.success, answer),
        (error: unknown) => this.endings.finish(task, OUTCOME.failed, error),
      )
    else this.endings.finish(task, OUTCOME.success, result)
    return true
  }

  /** A slot is free: a parent whose sub-tasks are done goes first, then the next task. */
  #release(task: TaskContext): void {
    if (!this.#slots.giveBack(task)) return
    if (this.#waiting.resumeOne()) return
    if (this.#queue.length > 0) this.#pump()
    else this.#arm()
  }

  /** Tasks whose start was announced stay: for the driver they have started. */
  #takeUnstarted(): number[] {
    const isBegun = (item: TaskItem) => this.#starts.isBegun(item[0])
    const queued = this.#queue.drain()
    this.#queue.unshift(queued.filter(isBegun))
    const unstarted = [...queued, ...this.agents.takeWaiting(isBegun)].filter((item) => !isBegun(item))
    return unstarted.map((item) => item[0])
  }

  // ---- the end of a turn of the event loop

  #arm(): void {
    if (this.#armed) return
    this.#armed = true
    setImmediate(this.#turn)
  }

  readonly #turn = () => {
    this.#armed = false
    this.#turnBegan = performance.now()
    if (this.#queue.length > 0) this.#pump()
    this.outbox.flush()
    if (this.#queue.length === 0 && !this.recycling.retiring) this.#hunger.sayIfHungry()
    this.recycling.check(this.#settings)
  }

  #outcome(outcome: Outcome, size: number): void {
    this.outbox.outcome(outcome, size)
    if (this.#starts.suspects) this.outbox.flush()
  }
}

const runAgent = (definition: RunnableDefinition, input: unknown, task: TaskContext) => definition.run(input, task)
