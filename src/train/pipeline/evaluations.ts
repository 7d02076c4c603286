import type { Outcome } from '../../grade/outcome.ts'
import { summarizeOutcomes } from '../../grade/summarize.ts'
import type { TestReport } from './epoch-report.ts'
import { bestOf, compareFigures, evaluationFigures } from './evaluation.ts'
import type { TrainingObserver } from './observer.ts'
import { runSeed } from './seeds.ts'
import { selfDirectedLearner } from './self-directed-learner.ts'
import type { Settings } from './settings.ts'
import type { TaskSets } from './task-sets.ts'
import type { EvalRow, TrainingRecord } from './training-record.ts'
import type { TrainingRuns } from './training-runs.ts'
import type { Versions } from './versions.ts'

interface Parts {
  readonly settings: Settings
  readonly sets: TaskSets
  readonly record: TrainingRecord
  readonly runs: TrainingRuns
  readonly versions: Versions
  readonly observer: TrainingObserver
}

/**
 * Evaluates versions of a training. All versions run the same tasks with the same seeds, so that they can be compared
 * task by task.
 */
export class Evaluations {
  readonly #parts: Parts
  readonly #rows: EvalRow[]
  /** Outcomes of this session, because several versions are compared with the first. */
  readonly #outcomes = new Map<string, readonly Outcome[]>()

  constructor(parts: Parts) {
    this.#parts = parts
    this.#rows = [...parts.record.history.evals]
  }

  /** False if evaluation is disabled or there are no validation tasks. */
  get canValidate(): boolean {
    return this.#parts.settings.evaluate !== undefined && this.#parts.sets.validation.length > 0
  }

  get canTest(): boolean {
    return this.#parts.settings.evaluate !== undefined && this.#parts.sets.test.length > 0
  }

  /** The best version by validation, the last of equals; undefined if none was evaluated. */
  get best(): EvalRow | undefined {
    return bestOf(this.#rows)
  }

  /** All stored evaluations. */
  get rows(): readonly EvalRow[] {
    return this.#rows
  }

  get versions(): ReadonlySet<number> {
    return new Set(this.#rows.map(({ version }) => version))
  }

  find(version: number, split: EvalRow['split']): EvalRow | undefined {
    return this.#rows.find((row) => row.version === version && row.split === split)
  }

  /** Runs the validation tasks, unless they were already run. */
  async validate(version: number): Promise<EvalRow> {
    return this.find(version, 'validation') ?? (await this.#evaluate(version, 'validation')).row
  }

  /** The outcomes of the validation tasks, one per rollout. If they were already run, they are read from the store. */
  async outcomes(version: number): Promise<readonly Outcome[]> {
    return (await this.#evaluate(version, 'validation')).outcomes
  }

  /**
   * Runs the test tasks with the best version and with the first one. If they were already run, the outcomes are read
   * from the store.
   */
  test(best: number): Promise<TestReport> {
    return this.#comparedWithFirst(best, 'test')
  }

  /** Runs the `offTask` tasks with a version. Undefined if there are none. */
  async offTask(version: number): Promise<TestReport | undefined> {
    const { settings, sets } = this.#parts
    if (settings.evaluate === undefined || sets['off-task'].length === 0) return undefined
    return this.#comparedWithFirst(version, 'off-task')
  }

  async #comparedWithFirst(version: number, split: EvalRow['split']): Promise<TestReport> {
    const before = await this.#evaluate(0, split)
    const after = version === 0 ? before : await this.#evaluate(version, split)
    const difference = compareFigures(before.outcomes, after.outcomes)
    return { ...after.row.summary, version, before: before.row.summary, difference }
  }

  async #evaluate(version: number, split: EvalRow['split']): Promise<{ row: EvalRow; outcomes: readonly Outcome[] }> {
    const { settings, sets, record, runs, versions, observer } = this.#parts
    const { mode, rollouts: validationRollouts, testRollouts } = settings.evaluate!
    const rollouts = split === 'test' ? testRollouts : validationRollouts
    const tasks = sets[split]
    const known = this.find(version, split)
    const name = `${version} ${split}`
    const seen = known && this.#outcomes.get(name)
    if (seen) return { row: known, outcomes: seen }
    const run = `${record.id}.v${String(version).padStart(5, '0')}.${split}`
    observer.run(`${split} of version ${version}`, tasks.length * rollouts, run)
    const evaluation = {
      ...{ runId: run, rollouts, tasks, split, mode, by: await versions.get(version) },
      seed: runSeed(settings.seed, 'evaluate', split),
    }
    const once = await runs.judge(evaluation)
    // Retry: an unavailable server or machine may be back.
    const isIncomplete = known === undefined && runs.stored && summarizeOutcomes(once).withoutResult > 0
    const outcomes = isIncomplete ? await runs.judge({ ...evaluation, retryFailed: true }) : once
    if (split !== 'validation') this.#outcomes.set(name, outcomes)
    if (known) return { row: known, outcomes }
    const row: EvalRow = {
      version,
      split,
      run,
      tasks: tasks.length,
      rollouts,
      summary: evaluationFigures(outcomes, selfDirectedLearner(settings) !== undefined),
    }
    const { withoutResult } = row.summary
    if (withoutResult > 0) observer.notice(missingResults(row, withoutResult, outcomes))
    this.#rows.push(row)
    record.evaluation(row, this.best?.version ?? null)
    observer.evaluation(row)
    return { row, outcomes }
  }
}

/** A notice, because fewer results widen the interval and may change which version is best. */
function missingResults({ split, version }: EvalRow, count: number, outcomes: readonly Outcome[]): string {
  const [code] = outcomes.flatMap(({ code, grade }) => code ?? grade?.error?.code ?? [])
  return `${split} of version ${version}: ${count} of ${outcomes.length} episodes have no result and are left out${code === undefined ? '' : `; the first error is ${code}`}`
}
