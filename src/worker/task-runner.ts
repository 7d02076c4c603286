import { AsyncLocalStorage } from 'node:async_hooks'
import type { RunnableDefinition } from '../agent.ts'
import type { TaskErrorCode } from '../errors.ts'
import type { Channel } from '../protocol/channel.ts'
import {
  type DriverMessage,
  type Experience,
  OUTCOME,
  type Outcome,
  type OutcomeStatus,
  type Profile,
  type TaskItem,
  type WorkerMessage,
  type WorkerSettings,
} from '../protocol/messages.ts'
import { lastPackedSize, NotPackable, pack, unpack } from '../protocol/pack.ts'
import type { ListMemory } from '../trajectory/list-memory.ts'
import { type PackedStep, packStep } from '../trajectory/packed-step.ts'
import type { Step } from '../trajectory/step.ts'
import type { Asks } from './asks.ts'
import { TaskContext } from './context.ts'
import { errorItem } from './error-item.ts'
import { Outbox } from './outbox.ts'
import { Requests } from './requests.ts'
import { outsideTasks } from './script-guard.ts'
import type { SideThread } from './side.ts'
import { SubTasks } from './subtasks.ts'
import type { Timeouts } from './timeouts.ts'

/** Tasks are started for this long before I/O gets its turn. */
const SLICE_MS = 1
/** How long a task that was timed out or cancelled keeps its slot, so that one that heeds its signal ends in peace. */
const ZOMBIE_GRACE_MS = 500
const MEMORY_CHECK_MS = 1000
/** A task that has run for this long is announced to the run file; how often it is looked for such. */
const LONG_MS = 200
const LOOK_MS = 100

/** An agent in this worker. Tasks wait in `waiting` while its code loads or its `setup` runs. */
export interface LoadedAgent {
  definition: RunnableDefinition | undefined
  params: unknown
  state: unknown
  setUp: boolean
  settingUp: boolean
  readonly waiting: TaskItem[]
}

/** Runs many tasks at once and tells the driver how they ended. */
export class TaskRunner {
  readonly agents = new Map<number, LoadedAgent>()
  readonly profiles = new Map<number, Profile>()
  readonly live = new Map<number, TaskContext>()
  readonly requests: Requests
  /** Asks the driver also while the event loop is blocked. */
  readonly side: SideThread
  readonly subTasks: SubTasks
  readonly timeouts: Timeouts
  readonly #current = new AsyncLocalStorage<TaskContext>()
  readonly #channel: Channel<WorkerMessage, DriverMessage>
  readonly #outbox: Outbox
  readonly #leaving: AbortSignal
  #settings: WorkerSettings = {
    concurrency: 1,
    recycleAfterTasks: undefined,
    recycleAboveMb: undefined,
    withheldEnv: [],
  }
  #queue: TaskItem[] = []
  #head = 0
  #running = 0
  #careful = false
  #announced = 0
  /** Tasks that wait for the driver's `go`, and those that have it. */
  readonly #asking = new Map<number, TaskItem>()
  readonly #allowed = new Set<number>()
  #guarded = false
  #armed = false
  #pumping = false
  #turnBegan = 0
  #fresh = false
  #finished = 0
  #zombies = 0
  #retiring = false
  #memoryCheckedAt = 0
  #looking = false
  /** Tasks whose clock stands. */
  #standing = 0

  constructor(
    channel: Channel<WorkerMessage, DriverMessage>,
    timeouts: (runner: TaskRunner) => Timeouts,
    leaving: AbortSignal,
    side: SideThread,
  ) {
    this.side = side
    this.#channel = channel
    this.#outbox = new Outbox(
      channel,
      () => this.#arm(),
      () => this.#pump(),
    )
    this.#leaving = leaving
    this.timeouts = timeouts(this)
    this.requests = new Requests(channel, {
      giveSlot: (task) => this.#release(task),
      takeSlot: (task) => {
        if (this.#running >= this.#settings.concurrency) return false
        this.#running++
        task.holdsSlot = true
        return true
      },
      stopClock: (task, asks) => {
        this.#standing++
        this.timeouts.stop(task, asks)
      },
      startClock: (task, asks) => {
        this.#standing--
        this.timeouts.go(task, asks)
        // It may be hungry now.
        this.#arm()
      },
      flush: () => this.flush(),
    })
    this.subTasks = new SubTasks(this.requests)
  }

  readonly current = (): TaskContext | undefined => this.#current.getStore()

  /** Large params travel slowly: tasks may name an agent before it is here. */
  agent(key: number): LoadedAgent {
    let agent = this.agents.get(key)
    if (agent === undefined) {
      agent = {
        definition: undefined,
        params: undefined,
        state: undefined,
        setUp: false,
        settingUp: false,
        waiting: [],
      }
      this.agents.set(key, agent)
    }
    return agent
  }

  configure(settings: WorkerSettings): void {
    this.#settings = settings
  }

  /** The watchdog is there: tasks may start. Before that, a busy loop could outlive its driver. */
  open(): void {
    this.#guarded = true
    this.#pump()
  }

  take(tasks: TaskItem[], careful: boolean): void {
    this.#careful = careful
    for (const task of tasks) this.#queue.push(task)
    this.#fresh = true
    this.#turnBegan = performance.now()
    this.#pump()
  }

  /** The agent's code is there: start what waited for it. */
  agentReady(agent: LoadedAgent): void {
    const waiting = agent.waiting.splice(0)
    this.#queue.splice(this.#head, 0, ...waiting)
    this.#pump()
  }

  /** Ends a task for the driver; whatever its code still does is not listened to. */
  settle(task: TaskContext, status: OutcomeStatus, value: unknown, size = 0, experience?: unknown): void {
    if (task.settled) return
    task.settled = true
    this.live.delete(task.lease)
    if (task.timer !== undefined) clearTimeout(task.timer)
    this.#finished++
    const now = performance.now()
    const outcome: Outcome = [task.lease, status, value, Math.round((now - task.startedAt) * 1000)]
    if (task.sideAsks > 0) this.side.forget(task.lease)
    if (task.asks) this.#endAsks(task, task.asks, outcome, now)
    if (experience !== undefined) {
      outcome[4] ??= 0
      outcome[5] = experience
    }
    this.#outcome(outcome, size)
  }

  #endAsks(task: TaskContext, asks: Asks, outcome: Outcome, now: number): void {
    const stoodMs = asks.stoodUntil(now)
    if (stoodMs > 0) outcome.push(Math.round(stoodMs * 1000))
    if (asks.standsSince > 0) this.#standing--
    const [, status] = outcome
    if (status === OUTCOME.success || status === OUTCOME.failed) this.requests.forget(task)
  }

  /** Timed out or cancelled: the driver knows at once, the code gets its signal and, for a moment, keeps its slot. */
  abandon(task: TaskContext, status: OutcomeStatus, code: TaskErrorCode, message: string): void {
    if (task.settled) return
    const error = new DOMException(message, status === OUTCOME.timeout ? 'TimeoutError' : 'AbortError')
    this.settle(task, status, pack({ code, name: error.name, message, stack: undefined }))
    this.timeouts.watchGivenUp(task)
    task.abort(error)
    this.requests.abandon(task, error)
    setTimeout(() => this.#becomeZombie(task), ZOMBIE_GRACE_MS).unref()
    this.flush()
  }

  cancel(lease: number, reason: 'cancelled' | 'deadline'): void {
    this.#channel.control({ type: 'cancel-seen', lease })
    const task = this.live.get(lease)
    if (task) {
      const [code, message] = cancelText(reason)
      this.abandon(task, OUTCOME.cancelled, code, message)
      return
    }
    if (this.#stopAsking(lease) || this.#unqueue(lease)) {
      const [code, message] = cancelText(reason)
      this.#outcome([lease, OUTCOME.cancelled, pack({ code, name: 'AbortError', message, stack: undefined }), 0], 0)
      this.#pump()
    }
  }

  emitStep(lease: number, step: Step, lists: () => ListMemory): void {
    let packed: PackedStep
    try {
      packed = packStep(step, lists)
    } catch (error) {
      if (!(error instanceof NotPackable)) throw error
      throw new TypeError(`ctx.step(): the step cannot be recorded: ${error.message}; record plain data`)
    }
    this.#outbox.step(lease, packed)
  }

  emitLog(lease: number, line: string): void {
    this.#outbox.line(lease, line)
  }

  /** Sends what has gathered. */
  flush(): void {
    this.#outbox.flush()
  }

  /** Sends all there is: the process ends. */
  last(): void {
    this.#outbox.last()
  }

  stored(bytes: number): void {
    this.#outbox.stored(bytes)
  }

  /** Resolves when steps may be recorded again; undefined: now. */
  get roomForSteps(): Promise<void> | undefined {
    return this.#outbox.room
  }

  /** Others are idle: give back what is not started. */
  recall(): void {
    this.#channel.control({ type: 'returned', unstarted: this.#unstarted() })
  }

  #unstarted(): number[] {
    const unstarted = this.#queue.slice(this.#head).map((task) => task[0])
    for (const agent of this.agents.values()) unstarted.push(...agent.waiting.splice(0).map((task) => task[0]))
    this.#queue = []
    this.#head = 0
    return unstarted
  }

  retire(reason: string): void {
    if (this.#retiring) return
    this.#retiring = true
    this.flush()
    const unstarted = this.#unstarted()
    this.#channel.post({ type: 'retire', reason, unstarted })
  }

  #pump(): void {
    // A task that ends at once frees its slot inside this loop; the loop goes on by itself.
    if (this.#pumping || !this.#guarded || this.#outbox.room) return
    this.#pumping = true
    const { concurrency } = this.#settings
    let now = performance.now()
    while (this.#head < this.#queue.length && this.#running < concurrency && now - this.#turnBegan < SLICE_MS) {
      const item = this.#queue[this.#head++]!
      if (!this.#start(item, now)) {
        this.#head--
        break
      }
      now = performance.now()
    }
    this.#pumping = false
    const more = this.#head < this.#queue.length
    if (!more) {
      this.#queue = []
      this.#head = 0
    }
    // With all slots taken there is nothing to do until one is free: an armed turn would spin.
    if (!more || this.#running < concurrency) this.#arm()
  }

  /** False: not now, the wire is full and this task may only start once the driver knows of it. */
  #start(item: TaskItem, now: number): boolean {
    const profile = this.profiles.get(item[1])!
    const agent = this.agent(profile.agent)
    const { definition } = agent
    if (definition === undefined || (!agent.setUp && definition.setup)) {
      agent.waiting.push(item)
      if (definition !== undefined && !agent.settingUp) void this.#setUp(agent, definition)
      return true
    }
    if (profile.announce && !this.#allowed.has(item[0])) {
      this.#ask(item)
      return true
    }
    if ((profile.announce || this.#careful) && !this.#announce(item[0])) return false
    if (profile.announce) this.#allowed.delete(item[0])
    const task = new TaskContext(this, item, profile, agent.params, agent.state, now)
    this.live.set(task.lease, task)
    this.#running++
    if (profile.timeoutMs !== undefined) this.timeouts.watch(task, profile.timeoutMs)
    if (profile.recorded) this.#lookSoon()
    let result: unknown
    try {
      result = this.#current.run(task, runAgent, definition, unpack(item[3]), task)
    } catch (error) {
      this.#finish(task, OUTCOME.failed, error)
      return true
    }
    if (typeof result === 'object' && result !== null && typeof (result as PromiseLike<unknown>).then === 'function')
      (result as PromiseLike<unknown>).then(
        (answer) => this.#finish(task, OUTCOME.success, answer),
        (error: unknown) => this.#finish(task, OUTCOME.failed, error),
      )
    else this.#finish(task, OUTCOME.success, result)
    return true
  }

  /** A run file has a row for tasks that run for a while, so that one sees what is going on; most are over before. */
  #lookSoon(): void {
    if (this.#looking) return
    this.#looking = true
    setTimeout(() => {
      this.#looking = false
      this.#announceLong()
    }, LOOK_MS).unref()
  }

  #announceLong(): void {
    const now = performance.now()
    const tasks: [lease: number, ms: number][] = []
    let more = false
    for (const task of this.live.values()) {
      if (!task.isUnknown) continue
      const ms = Math.round(now - task.startedAt)
      if (ms < LONG_MS) {
        more = true
        continue
      }
      task.announced = true
      tasks.push([task.lease, ms])
    }
    if (tasks.length > 0) this.#channel.post({ type: 'running', tasks })
    if (more) this.#lookSoon()
  }

  /** A task that must never be started twice starts when the driver has said that it may; until then it has its slot. */
  #ask(item: TaskItem): void {
    this.#asking.set(item[0], item)
    this.#running++
    this.#channel.control({ type: 'may-start', lease: item[0] })
  }

  go(lease: number): void {
    const item = this.#stopAsking(lease)
    if (!item) return
    this.#allowed.add(lease)
    this.#queue.splice(this.#head, 0, item)
    this.#pump()
  }

  #stopAsking(lease: number): TaskItem | undefined {
    const item = this.#asking.get(lease)
    if (!item) return undefined
    this.#asking.delete(lease)
    this.#running--
    return item
  }

  /** Tells the driver that a task starts; false while that, or anything said before it, could still be lost. */
  #announce(lease: number): boolean {
    if (this.#announced !== lease) {
      this.flush()
      this.#channel.control({ type: 'started', leases: [lease] })
      this.#announced = lease
    }
    return !this.#channel.holdsBytes
  }

  #finish(task: TaskContext, status: OutcomeStatus, value: unknown): void {
    if (!task.settled) {
      if (status === OUTCOME.success) this.#succeed(task, value)
      else this.settle(task, status, packError('TASK_THREW', value, this.#settings.withheldEnv))
    } else if (task.zombie) this.#zombies--
    task.end()
    this.#release(task)
  }

  #succeed(task: TaskContext, answer: unknown): void {
    let packed: unknown
    let size: number
    let experience: unknown
    try {
      packed = pack(answer)
      size = lastPackedSize(packed)
      experience = packExperience(task)
    } catch (error) {
      const reason = error instanceof NotPackable ? error.message : String(error)
      const message = `the answer cannot be sent: ${reason}; return plain data`
      this.settle(
        task,
        OUTCOME.failed,
        pack({ code: 'ANSWER_NOT_SERIALISABLE', name: 'TaskError', message, stack: undefined }),
      )
      return
    }
    this.settle(task, OUTCOME.success, packed, size, experience)
  }

  /** A slot is free: a parent whose sub-tasks are done goes first, then whatever is next. */
  #release(task: TaskContext): void {
    if (!task.holdsSlot) return
    task.holdsSlot = false
    this.#running--
    if (this.requests.resumeOne()) return
    if (this.#head < this.#queue.length) this.#pump()
    else this.#arm()
  }

  async #setUp(agent: LoadedAgent, definition: RunnableDefinition): Promise<void> {
    agent.settingUp = true
    try {
      agent.state = await outsideTasks.run('setup', () => definition.setup!(agent.params, { signal: this.#leaving }))
      agent.setUp = true
    } catch (error) {
      // Not remembered: the next task tries again, so that a passing fault does not turn this worker into a black hole.
      const value = packError(
        'SETUP_FAILED',
        error,
        this.#settings.withheldEnv,
        `setup of agent '${definition.name}' failed: `,
      )
      for (const item of agent.waiting.splice(0)) this.#outcome([item[0], OUTCOME.failed, value, 0], 0)
    }
    agent.settingUp = false
    this.agentReady(agent)
  }

  #outcome(outcome: Outcome, size: number): void {
    this.#outbox.outcome(outcome, size)
    if (this.#careful) this.#outbox.flush()
  }

  #unqueue(lease: number): boolean {
    for (const list of [this.#queue, ...[...this.agents.values()].map((agent) => agent.waiting)]) {
      const at = list.findIndex((task, index) => task[0] === lease && (list !== this.#queue || index >= this.#head))
      if (at < 0) continue
      list.splice(at, 1)
      return true
    }
    return false
  }

  #becomeZombie(task: TaskContext): void {
    if (task.ended) return
    task.zombie = true
    this.#zombies++
    this.#release(task)
    if (this.#zombies >= Math.max(1, this.#settings.concurrency >> 2))
      this.retire('tasks that were timed out or cancelled do not end: they ignore ctx.signal')
  }

  #arm(): void {
    if (this.#armed) return
    this.#armed = true
    setImmediate(this.#turn)
  }

  readonly #turn = () => {
    this.#armed = false
    this.#turnBegan = performance.now()
    if (this.#head < this.#queue.length) this.#pump()
    this.flush()
    this.#sayHungry()
    this.#checkRecycling()
  }

  /** Once per batch taken: all of it is running, and none of it is done. */
  #sayHungry(): void {
    if (!this.#fresh || this.#head < this.#queue.length || this.#retiring) return
    // All they do is wait for the driver: more tasks would wait too. It is said when one of them goes on.
    if (this.#standing > 0 && this.#standing >= this.#running) return
    this.#fresh = false
    if (this.#running > 0 && this.#running < this.#settings.concurrency) this.#channel.control({ type: 'hungry' })
  }

  #checkRecycling(): void {
    const { recycleAfterTasks, recycleAboveMb } = this.#settings
    if (recycleAfterTasks !== undefined && this.#finished >= recycleAfterTasks)
      this.retire(`${this.#finished} tasks done`)
    if (recycleAboveMb === undefined) return
    const now = performance.now()
    if (now - this.#memoryCheckedAt < MEMORY_CHECK_MS) return
    this.#memoryCheckedAt = now
    const megabytes = process.memoryUsage.rss() / 2 ** 20
    if (megabytes > recycleAboveMb) this.retire(`${Math.round(megabytes)} MB in use`)
  }
}

/** What a task came to besides its answer, if there is something to tell. */
function packExperience(task: TaskContext): unknown {
  const { episode } = task
  const digest = task.digest(OUTCOME.success)
  if (episode === undefined && digest === undefined) return undefined
  return pack({ ...(episode && { episode }), ...(digest !== undefined && { digest }) } satisfies Experience)
}

const runAgent = (definition: RunnableDefinition, input: unknown, task: TaskContext) => definition.run(input, task)

const cancelText = (reason: 'cancelled' | 'deadline'): [TaskErrorCode, string] =>
  reason === 'deadline'
    ? ['RUN_DEADLINE', 'the run reached its deadline']
    : ['TASK_CANCELLED', 'the task was cancelled']

const packError = (code: TaskErrorCode, error: unknown, withheld: readonly string[], prefix = ''): unknown =>
  pack(errorItem(code, error, withheld, prefix))
