import { type ErrorItem, type Experience, OUTCOME, type WorkerMessage } from '../protocol/messages.ts'
import { readExperience, readOutcome } from '../protocol/read-outcome.ts'
import { escapeControls, oneLine } from '../text/escape-controls.ts'
import type { PackedStep } from '../trajectory/packed-step.ts'
import { awayMs, type Leases, noteStart } from './leases.ts'
import { addRecords, stepBytes } from './records.ts'
import type { Responses } from './responses.ts'
import type { Run } from './run.ts'
import type { Lease, TaskEntry } from './task-entry.ts'
import type { WorkerHandle } from './worker-handle.ts'

type Done = Extract<WorkerMessage, { type: 'done' }>

interface Hooks {
  /** The run has spent its budget. */
  overBudget(run: Run): void
}

/** Handles what workers report about tasks: steps, printed lines and outcomes. */
export class Outcomes {
  readonly #leases: Leases
  readonly #responses: Responses
  readonly #hooks: Hooks

  constructor(leases: Leases, responses: Responses, hooks: Hooks) {
    this.#leases = leases
    this.#responses = responses
    this.#hooks = hooks
  }

  /** True if the worker may now have room for more tasks. */
  receive(worker: WorkerHandle, { records, outcomes }: Done): boolean {
    for (const [lease, steps, logs] of records) this.#records(worker, lease, steps, logs)
    if (outcomes.length === 0) return false
    const now = performance.now()
    let heldMs = 0
    for (const outcome of outcomes) heldMs += this.#outcome(worker, outcome, now)
    worker.window.done(outcomes.length, heldMs, now)
    this.#leases.finished(worker)
    return true
  }

  /** Charges the task with a failed attempt. */
  charge(entry: TaskEntry, status: 'failed' | 'timeout' | 'crashed', error: ErrorItem, runMs = 0): void {
    entry.attempts++
    if (status === 'crashed' || error.code === 'TASK_BLOCKED_WORKER') entry.alone = true
    this.#responses.fail(entry, status, error, runMs)
  }

  #records(worker: WorkerHandle, id: number, steps: PackedStep[], logs: string[]): void {
    const lease = worker.leases.get(id) ?? worker.lost.get(id)
    if (!lease) return worker.stored(stepBytes(steps))
    noteStart(lease)
    const { entry } = lease
    const lines = addRecords(lease, steps, logs)
    const { run } = entry
    if (run.options.budget?.isSpent && run.stopping === undefined && !run.over) this.#hooks.overBudget(run)
    if (lines.length === 0 || lease !== entry.lease) return
    if (run.options.showLogs) for (const line of lines) showLog(entry.id, line)
    else run.hiddenLines += lines.length
  }

  /** Returns how long the task had its slot. */
  #outcome(
    worker: WorkerHandle,
    [id, status, value, runUs, waitedUs = 0, experience]: Done['outcomes'][number],
    now: number,
  ): number {
    const runMs = runUs / 1000
    const lease = worker.leases.get(id)
    // Late: its lease was closed by a presumed crash or a cancellation. The first answer stands.
    if (!lease) {
      const lost = worker.lost.get(id)
      worker.lost.delete(id)
      if (lost && status !== OUTCOME.cancelled) this.#responses.superseded(lost, status, value, runMs)
      return 0
    }
    const { entry } = lease
    // A malformed outcome throws here, while the worker still holds its leases, so that its tasks are run again.
    const outcome = readOutcome(status, value)
    entry.experience = comparable(lease, readExperience(experience))
    this.#leases.finish(lease)
    entry.waitedMs = Math.min(runMs, waitedUs / 1000)
    // Time spent waiting for the driver says nothing about the worker's speed.
    worker.pace.note(runMs - entry.waitedMs, entry.agent)
    if (status === OUTCOME.success) this.#responses.succeed(entry, value, outcome, runMs, now)
    else if (status === OUTCOME.cancelled) this.#responses.cancelled(entry, runMs)
    else if (status === OUTCOME.failed && lease.unavailable)
      this.#responses.unavailable(entry, lease.unavailable, runMs)
    else this.charge(entry, status === OUTCOME.timeout ? 'timeout' : 'failed', outcome as ErrorItem, runMs)
    return Math.max(0, runMs - awayMs(lease, now))
  }
}

/** Drops the digest of an attempt with secrets: it covers them, so short secrets could be guessed from it. */
function comparable({ entry, records }: Lease, experience: Experience | undefined): Experience | undefined {
  const { redactor } = entry.run.options
  if (redactor === undefined || experience?.digest === undefined) return experience
  const { digest: _, ...rest } = experience
  return records?.redacted || redactor.value(rest) !== rest ? rest : experience
}

const showLog = (id: string, line: string) => void process.stderr.write(`[${oneLine(id)}] ${escapeControls(line)}\n`)
