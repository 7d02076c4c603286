import { type ErrorItem, OUTCOME, type OutcomeStatus, type Packed, STATUS } from '../protocol/messages.ts'
import { readOutcome } from '../protocol/read-outcome.ts'
import { makeResponse, type ResponseEnd, type StepSource, taskError } from '../response.ts'
import type { TaskResponse, TaskStatus } from '../task.ts'
import { stepsText } from '../trajectory/packed-step.ts'
import type { Step } from '../trajectory/step.ts'
import { unpackSteps } from '../trajectory/unpack-steps.ts'
import { decideRetry } from './retry-decision.ts'
import type { Run, StopReason } from './run.ts'
import type { ReadyTask } from './source.ts'
import type { AttemptRecords, Lease, TaskEntry } from './task-entry.ts'

interface Hooks {
  /** `afterMs`: a wait that replaces the backoff. */
  retry(entry: TaskEntry, afterMs: number | undefined): void
  failRun(run: Run, error: Error): void
  childSettled(child: TaskEntry, response: TaskResponse): void
  cancelChildren(entry: TaskEntry): void
  ended(run: Run): void
  /** A worker's stack with the driver's own file paths. */
  stackOf(stack: string): string
}

const NO_STEPS: readonly Step[] = Object.freeze([])
const NO_LOGS: readonly string[] = Object.freeze([])
const NO_USAGE = Object.freeze({})

const REACHED_DEADLINE: ErrorItem = {
  code: 'RUN_DEADLINE',
  name: 'AbortError',
  message: 'the run reached its deadline before this task was done',
  stack: undefined,
}

const overBudget = ({ options }: Run): ErrorItem => ({
  code: 'RUN_BUDGET',
  name: 'AbortError',
  message: `the run reached its budget (${options.budget}) before this task was done; resume it with a larger budget`,
  stack: undefined,
})

/** Includes the caller's reason if the whole run was cancelled. */
function cancelledError({ aborted }: Run): ErrorItem {
  const message = `the task was cancelled${aborted?.text === undefined ? '' : `: ${aborted.text}`}`
  const cause = aborted && 'thrown' in aborted ? { thrown: aborted.thrown } : {}
  return { code: 'TASK_CANCELLED', name: 'AbortError', message, stack: undefined, ...cause }
}

const STOPPED: Readonly<Record<StopReason, (run: Run) => ErrorItem>> = {
  cancelled: cancelledError,
  deadline: () => REACHED_DEADLINE,
  budget: overBudget,
}

/** The steps if they are kept in memory, else where to read them. Steps that cannot be decoded are left out. */
function stepsOf(entry: TaskEntry, records: AttemptRecords | undefined): readonly Step[] | StepSource {
  if (records === undefined || records.count === 0) return NO_STEPS
  // The steps of graders are not kept.
  if (records.steps === undefined) return entry.run.recorder?.stepsOf(entry, records) ?? NO_STEPS
  // Nearly all steps are JSON, and parsing one text is faster than parsing many.
  const text = stepsText(records.steps)
  try {
    return text === undefined ? unpackSteps(records.steps) : (JSON.parse(text) as Step[])
  } catch {
    return NO_STEPS
  }
}

/** Turns outcomes of attempts into exactly one response per task. */
export class Responses {
  readonly #hooks: Hooks

  constructor(hooks: Hooks) {
    this.#hooks = hooks
  }

  /** `answer` is the decoded `value`. */
  succeed(entry: TaskEntry, value: Packed, answer: unknown, runMs: number, now: number): void {
    entry.attempts++
    entry.answer = value
    const bytes = value instanceof Uint8Array || value instanceof String ? value.length : 64
    this.#settle(entry, this.#response(entry, 'success', answer, undefined, runMs, now), bytes)
  }

  /** Retries if attempts are left, else answers. */
  fail(entry: TaskEntry, status: Exclude<TaskStatus, 'success' | 'cancelled'>, error: ErrorItem, runMs: number): void {
    if (entry.settled) return
    if (entry.cancelling !== undefined) return this.cancelled(entry, runMs)
    const again = decideRetry(entry, status, error, () => taskError(error, this.#hooks.stackOf))
    // The run starts nothing more: a later session may retry the task.
    if (again && !again.problem && entry.run.stopping !== undefined) return this.stopped(entry, runMs)
    const response = this.#response(entry, status, undefined, error, runMs, performance.now())
    if (!again) return this.#settle(entry, response, 0)
    const { run } = entry
    run.recorder?.retried(entry, response)
    this.#hooks.retry(entry, again.afterMs)
    // Deferred: the same message may hold more outcomes, and they count.
    if (again.problem) queueMicrotask(() => this.#hooks.failRun(run, again.problem!))
  }

  cancelled(entry: TaskEntry, runMs = 0): void {
    if (entry.settled) return
    const error = STOPPED[entry.cancelling ?? 'cancelled'](entry.run)
    this.#settle(entry, this.#response(entry, 'cancelled', undefined, error, runMs, performance.now()), 0)
  }

  /** Its run starts nothing more, for a reason that the response tells. */
  stopped(entry: TaskEntry, runMs = 0): void {
    const { stopping } = entry.run
    if (stopping !== 'failed') entry.cancelling ??= stopping
    this.cancelled(entry, runMs)
  }

  /** It failed because something that it needs is not available to any task: a later session runs it again. */
  unavailable(entry: TaskEntry, error: ErrorItem, runMs: number): void {
    if (entry.settled) return
    if (entry.cancelling !== undefined) return this.cancelled(entry, runMs)
    // Its parent failed for the same reason, if it fails.
    const { parent } = entry
    if (parent?.lease) parent.lease.unavailable ??= error
    if (!parent) entry.run.unavailable ??= error
    this.#settle(entry, this.#response(entry, 'cancelled', undefined, error, runMs, performance.now()), 0)
  }

  /** Never run: something it depends on did not succeed. */
  skipped(entry: TaskEntry, message: string): void {
    const error: ErrorItem = { code: 'DEPENDENCY_FAILED', name: 'TaskError', message, stack: undefined }
    this.#settle(entry, this.#response(entry, 'cancelled', undefined, error, 0, performance.now()), 0)
  }

  /** An earlier session has started the task, and it must not run twice. */
  lost(entry: TaskEntry, message: string): void {
    entry.attempts++
    this.fail(entry, 'crashed', { code: 'WORKER_CRASHED', name: 'TaskError', message, stack: undefined }, 0)
  }

  unmet(entry: TaskEntry, engine: string): void {
    const message = `no worker of the ${engine} engine has the labels that this task requires: ${entry.options.requires?.join(', ')}`
    this.fail(entry, 'failed', { code: 'REQUIRES_UNMET', name: 'TaskError', message, stack: undefined }, 0)
  }

  /** Answers with the stored response of an earlier session. */
  restored(run: Run, { index, restored, restoredBytes = 0 }: ReadyTask): void {
    run.source.settled?.(index, restored!)
    run.sink.response(index, restored!, restoredBytes, undefined)
  }

  /** Records an outcome that came too late to count. Throws if it is malformed. */
  superseded(lease: Lease, status: OutcomeStatus, value: Packed, runMs: number): void {
    const { entry, worker, records } = lease
    const { run } = entry
    if (run.over || run.recorder === undefined) return
    const outcome = readOutcome(status, value)
    const [answer, error] = status === OUTCOME.success ? [outcome] : [undefined, outcome as ErrorItem]
    const late = { records, worker: worker.name, waitedMs: 0 }
    run.recorder.superseded(
      lease,
      this.#response(entry, STATUS[status]!, answer, error, runMs, performance.now(), late),
    )
  }

  #response(
    entry: TaskEntry,
    status: TaskStatus,
    answer: unknown,
    error: ErrorItem | undefined,
    runMs: number,
    now: number,
    { records, worker, waitedMs }: Pick<TaskEntry, 'records' | 'worker' | 'waitedMs'> = entry,
  ): TaskResponse {
    const { id, attempts, options, experience } = entry
    const base = {
      id,
      agentName: entry.agent.ref.name,
      usage: records?.usage ?? NO_USAGE,
      timing: { queuedMs: Math.max(0, now - entry.submittedAt - runMs), runMs, waitedMs },
      attempts,
      worker,
      logs: records?.logs ?? NO_LOGS,
      restored: false,
      groupId: options.groupId,
      rollout: options.rollout,
      episode: error === undefined ? experience?.episode : undefined,
      digest: error === undefined ? experience?.digest : undefined,
    }
    const steps = stepsOf(entry, records)
    const { around } = entry.run
    if (error === undefined) return makeResponse(base, { success: true, status: 'success', answer }, steps, around)
    const { redactor } = entry.run.options
    const told = redactor ? redactor.error(error) : error
    const end = { success: false, status, error: taskError(told, this.#hooks.stackOf) } as ResponseEnd
    return makeResponse(base, end, steps, around)
  }

  #settle(entry: TaskEntry, response: TaskResponse, bytes: number): void {
    const { run } = entry
    entry.settled = true
    entry.input = undefined
    // Cancel the children before this task counts as done: otherwise the last child could end the run without this response.
    if (entry.children) this.#hooks.cancelChildren(entry)
    run.live--
    if (run.over) return
    if (entry.parent) {
      run.recorder?.subTaskEnded(entry, response)
      this.#hooks.childSettled(entry, response)
    } else {
      run.source.settled?.(entry.index, response)
      run.sink.response(entry.index, response, bytes, entry)
    }
    entry.answer = undefined
    if (run.live === 0) this.#hooks.ended(run)
  }
}
