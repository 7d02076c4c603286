import { type Outcome, outcomeOf } from '../grade/outcome.ts'
import type { EvaluationSummary } from '../grade/summarize.ts'
import type { TaskResponse, TaskStatus } from '../task.ts'
import { Causes } from '../text/failure-causes.ts'
import { addUsage, type Usage } from '../trajectory/usage.ts'
import { remainingMs } from './eta.ts'
import { EvaluationTally } from './evaluation-tally.ts'
import type { RunStart } from './observer.ts'
import { Percentiles } from './percentiles.ts'
import { RecentRate } from './recent-rate.ts'
import type { FailureGroup, RunProgress, SlowTask } from './run-progress.ts'

const SLOWEST = 5
/** The most causes of failures that are counted: progress is written often. */
const MOST_CAUSES = 100

/** The part of a finished task that a tally needs, from a response or a row of a run file. */
export interface FinishedTask {
  readonly id: string
  readonly status: TaskStatus
  readonly code?: string | undefined
  /** Read only for tasks that failed, because it may be a getter. */
  readonly message?: string | undefined
  readonly runMs: number
  readonly waitedMs?: number | undefined
  readonly restored?: boolean | undefined
  readonly graderUsage?: Usage | undefined
  /** For evaluation. */
  readonly outcome?: Outcome | undefined
}

export function finishedTask(response: TaskResponse): FinishedTask {
  const { id, status, error, timing, restored } = response
  const outcome = outcomeOf(response)
  const { runMs, waitedMs } = timing
  const graderUsage = response.grade?.usage
  return {
    id,
    status,
    code: error?.code,
    message: error?.message,
    runMs,
    waitedMs,
    restored,
    graderUsage,
    outcome,
  }
}

/** The part of a run that a tally needs. */
type TalliedRun = Pick<RunStart, 'runId' | 'sampledFrom' | 'models'> &
  Partial<Pick<RunStart, 'total' | 'running' | 'stopping' | 'usage'>>

/** Counts the tasks of a run. Its memory does not grow with their number. */
export class Tally {
  readonly #run: TalliedRun
  readonly #clock: () => number
  readonly #startedAt: number
  readonly #counts: Record<TaskStatus, number> = { success: 0, failed: 0, timeout: 0, crashed: 0, cancelled: 0 }
  readonly #causes = new Causes(MOST_CAUSES)
  /** By the key of their cause. */
  readonly #failures = new Map<number, { count: number; readonly example: string }>()
  readonly #percentiles = new Percentiles()
  readonly #evaluation = new EvaluationTally()
  readonly #slowest: SlowTask[] = []
  readonly #graderUsage: Usage = {}
  readonly #rate: RecentRate
  #total: number | undefined
  #done = 0
  #restored = 0
  #retries = 0
  #waitedMs = 0

  /** `clock`: milliseconds since any fixed time. */
  constructor(run: TalliedRun, clock: () => number = () => performance.now()) {
    this.#run = run
    this.#total = run.total
    this.#clock = clock
    this.#startedAt = clock()
    this.#rate = new RecentRate(this.#startedAt)
  }

  add(task: FinishedTask): void {
    this.#counts[task.status]++
    if (task.status !== 'success') this.#addFailure(task)
    addUsage(this.#graderUsage, task.graderUsage)
    if (task.outcome) this.#evaluation.add(task.outcome)
    this.#waitedMs += task.waitedMs ?? 0
    // A resumed run runs it again.
    const isDone = task.status !== 'cancelled' || task.code === 'DEPENDENCY_FAILED'
    if (isDone) this.#done++
    if (task.restored) {
      this.#restored++
      // Restored tasks come before all others, and the time to read them is not part of the rate.
      if (this.#restored === this.#done) this.#rate.skip(this.#clock())
      return
    }
    if (isDone) this.#rate.add()
    // A task that was cancelled before it started has no run time, and that of a task that died with its worker may be unknown.
    if (task.status !== 'success' && task.runMs === 0) return
    this.#percentiles.add(task.runMs)
    this.#addSlow(task)
  }

  /** The task was cancelled before it started. */
  notRun(response: TaskResponse): void {
    this.#evaluation.add(outcomeOf(response))
  }

  retried(): void {
    this.#retries++
  }

  setTotal(tasks: number): void {
    this.#total = tasks
  }

  /** The evaluation; undefined if no answer is graded. */
  evaluation(): EvaluationSummary | undefined {
    return this.#evaluation.summary()
  }

  snapshot(): RunProgress {
    const now = this.#clock()
    const running = this.#run.running?.() ?? 0
    const perSecond = this.#rate.perSecond(now)
    const { count, max } = this.#percentiles
    const [p50, p90, p99] = [0.5, 0.9, 0.99].map((share) => this.#percentiles.at(share)) as [number, number, number]
    return {
      runId: this.#run.runId,
      total: this.#total,
      ...(this.#run.sampledFrom === undefined ? {} : { sampledFrom: this.#run.sampledFrom }),
      done: this.#done,
      running,
      counts: { ...this.#counts },
      restored: this.#restored,
      retries: this.#retries,
      elapsedMs: now - this.#startedAt,
      perSecond,
      // The tasks that are left will not run.
      etaMs: this.#run.stopping?.()
        ? undefined
        : remainingMs({ total: this.#total, done: this.#done, restored: this.#restored, running, perSecond }),
      runMs: count === 0 ? undefined : { p50, p90, p99, max },
      failures: [...this.#failures]
        .map(([key, { count, example: id }]): FailureGroup => {
          const { code, message } = this.#causes.get(key)
          return { code, count, example: { id, message } }
        })
        .sort((a, b) => b.count - a.count),
      slowest: [...this.#slowest],
      usage: this.#run.usage?.() ?? {},
      graderUsage: { ...this.#graderUsage },
      waitedMs: this.#waitedMs,
      waiting: (this.#run.models?.waiting ?? []).toSorted((a, b) => b.queued - a.queued),
      models: this.#run.models?.used ?? [],
    }
  }

  #addFailure(task: FinishedTask): void {
    const { id, code = 'UNKNOWN', message = '' } = task
    const key = this.#causes.keyOf(code, message)
    const group = this.#failures.get(key)
    if (group) group.count++
    else this.#failures.set(key, { count: 1, example: id })
  }

  #addSlow({ id, status, runMs }: FinishedTask): void {
    const slowest = this.#slowest
    if (slowest.length === SLOWEST && runMs <= slowest[SLOWEST - 1]!.runMs) return
    const place = slowest.findIndex((other) => runMs > other.runMs)
    slowest.splice(place === -1 ? slowest.length : place, 0, { id, status, runMs })
    if (slowest.length > SLOWEST) slowest.pop()
  }
}
