import { ManyworldsError } from '../../errors.ts'
import type { RunConfig } from '../../run-config.ts'
import { wordsOf } from '../../text/thrown.ts'
import { offTaskAlarms } from '../alarms.ts'
import { CollectionAhead } from './collection-ahead.ts'
import { type EpochReport, figuresOf, type TestReport } from './epoch-report.ts'
import { trainingGoal } from './goal.ts'
import { isEvaluated, isOutOfPatience, nextEpoch, type Progress } from './next-epoch.ts'
import {
  type CheckedOptions,
  type OpenedTraining,
  openParts,
  type SweptTraining,
  type TrainingParts,
} from './open-training.ts'
import { resultOf, type TrainingResult } from './result.ts'
import { runSelfDirectedEpoch } from './self-directed-epoch.ts'
import type { SelfDirectedLearner } from './self-directed-learner.ts'
import type { PlanRow } from './training-record.ts'
import { Stopped } from './training-runs.ts'
import type { Collected, EpochTarget } from './updates.ts'

export { checkedOptions } from './open-training.ts'

/** One session of a training: from when it is opened, new or resumed, until it is closed. */
export class Training {
  readonly #parts: TrainingParts
  readonly #ahead: CollectionAhead<PlanRow, Collected>
  /** How far to plan now. */
  #target: EpochTarget = { tasksPerEpoch: 0, epochs: 0 }
  #closed = false
  #busy = false
  /** The epoch in progress. */
  #now: Promise<unknown> = Promise.resolve()

  private constructor(parts: TrainingParts) {
    this.#parts = parts
    const { settings, updates } = parts
    this.#ahead = new CollectionAhead({
      ...{ maxStaleness: settings.overlap?.maxStaleness ?? 0, groups: settings.tasksPerUpdate },
      ...{ updates: updates.rows.length, plan: (number) => updates.plan(number, this.#target) },
      groupsOf: ({ tasks }) => tasks.length,
      collect: (plan, watch) => updates.collect(plan, watch),
    })
    process.once('exit', this.#leave)
  }

  /** `named`: a training that this process closed before, or one of a sweep. */
  static async open(checked: CheckedOptions, named: OpenedTraining | SweptTraining | undefined): Promise<Training> {
    return new Training(await openParts(checked, named))
  }

  get id(): string {
    return this.#parts.record.id
  }

  /** True once the session has ended, for any reason. */
  get closed(): boolean {
    return this.#closed
  }

  /** The result so far. */
  get result(): TrainingResult {
    return resultOf(this.#progress)
  }

  get config(): RunConfig {
    return this.#parts.config
  }

  /** Runs the next epoch, or finishes the last one; undefined if all are done, or the training has ended early. */
  async epoch(target: EpochTarget): Promise<EpochReport | undefined> {
    if (this.#busy)
      throw new ManyworldsError(
        'CONFIG_INVALID',
        `training '${this.id}' is already running an epoch; wait for it before starting the next`,
      )
    this.#busy = true
    try {
      return await (this.#now = this.#epoch(target))
    } catch (error) {
      if (error instanceof Stopped) throw await this.#stopped(error)
      await this.#end('failed', error as Error)
      throw this.#explained(error)
    } finally {
      this.#busy = false
    }
  }

  /** The report of the last epoch of an earlier session; undefined if there was none. Nothing is run again. */
  async last(): Promise<EpochReport | undefined> {
    const { updates, evaluations, versions, observer } = this.#parts
    const epoch = updates.rows.at(-1)?.epoch
    if (epoch === undefined) return undefined
    const { version } = versions.current.ref
    const validation = evaluations.find(version, 'validation')
    const best = evaluations.best?.version ?? version
    const test = evaluations.canTest && evaluations.find(best, 'test') ? await evaluations.test(best) : null
    const others = evaluations.find(version, 'off-task') ? await evaluations.offTask(version) : undefined
    const report = this.#report(epoch, best, validation && { version, ...validation.summary }, test, others ?? null)
    observer.epoch(report)
    return report
  }

  /** Ends the session. The training can be opened again. */
  async close(how: 'finished' | 'interrupted' = 'finished'): Promise<void> {
    if (this.#busy) {
      this.#parts.runs.stop(0)
      await this.#now.catch(() => {})
    }
    if (!this.#closed) await this.#end(how, undefined)
  }

  async #epoch({ tasksPerEpoch, epochs }: EpochTarget): Promise<EpochReport | undefined> {
    const { updates, evaluations, versions, observer, selfDirected } = this.#parts
    if (selfDirected) return this.#selfDirectedEpoch(selfDirected, epochs)
    const epoch = nextEpoch(this.#progress, { tasksPerEpoch, epochs })
    if (epoch === undefined) return undefined
    observer.goal(trainingGoal(this.#parts, epoch, { tasksPerEpoch, epochs }))
    if (epoch === 1 && updates.rows.length === 0 && evaluations.canValidate) await evaluations.validate(0)
    // With one epoch per call, the next call may use other options: collect nothing for it yet.
    this.#target = { tasksPerEpoch, epochs: Number.isFinite(epochs) ? epochs : epoch }
    while (updates.tasksOf(epoch) < tasksPerEpoch) {
      await updates.learn(await this.#collected())
      this.#ahead.consumed()
      this.#dropVersions()
    }
    const { version } = versions.current.ref
    const isDue = isEvaluated(this.#progress, epoch, epochs)
    const validation = isDue && evaluations.canValidate ? await evaluations.validate(version) : undefined
    const offTask = isDue ? ((await evaluations.offTask(version)) ?? null) : null
    this.#dropVersions()
    const isLast = epoch >= epochs || isOutOfPatience(this.#progress)
    return this.#reported(epoch, isLast, validation && { version, ...validation.summary }, offTask)
  }

  /** Runs an epoch of a learner that selects its own training data. */
  async #selfDirectedEpoch(learner: SelfDirectedLearner, epochs: number): Promise<EpochReport | undefined> {
    const doing = { parts: this.#parts, progress: () => this.#progress, dropVersions: () => this.#dropVersions() }
    const done = await runSelfDirectedEpoch(learner, doing, { epochs })
    if (done === undefined) return undefined
    const { epoch, isLast, validated: version } = done
    const { evaluations } = this.#parts
    const row = version === undefined ? undefined : evaluations.find(version, 'validation')
    const best = evaluations.best?.version ?? 0
    // Most of its versions are only candidates: evaluate only the best one, at the end.
    const offTask = isLast ? ((await evaluations.offTask(best)) ?? null) : null
    return this.#reported(epoch, isLast, row && { version: row.version, ...row.summary }, offTask)
  }

  /** Reports a finished epoch; the last one with the test. */
  async #reported(
    epoch: number,
    isLast: boolean,
    validation: EpochReport['validation'] | undefined,
    offTask: TestReport | null,
  ): Promise<EpochReport> {
    const { evaluations, versions, observer } = this.#parts
    const best = evaluations.best?.version ?? versions.current.ref.version
    const test = isLast && evaluations.canTest ? await evaluations.test(best) : null
    const report = this.#report(epoch, best, validation, test, offTask)
    observer.epoch(report)
    return report
  }

  /** Waits for the next batch. */
  async #collected(): Promise<Collected> {
    if (this.#parts.runs.stopped) throw new Stopped()
    return (await this.#ahead.next())!
  }

  /** Keeps the weights of versions that were evaluated or are in use. */
  #dropVersions(): void {
    const { updates, evaluations, versions } = this.#parts
    versions.keepOnly(new Set([...evaluations.versions, ...updates.acting]))
  }

  get #progress(): Progress {
    const { settings, sets, updates, evaluations } = this.#parts
    return { settings, sets, updates: updates.rows, evaluations: evaluations.rows }
  }

  #report(
    epoch: number,
    best: number,
    validation: EpochReport['validation'] | undefined,
    test: TestReport | null,
    offTask: TestReport | null,
  ): EpochReport {
    const { updates, versions, settings, selfDirected } = this.#parts
    const figures = figuresOf(updates.rows.filter((row) => row.epoch === epoch))
    return {
      ...{ id: this.id, epoch, updates: updates.rows.length, version: versions.current.ref.version, ...figures },
      // The metrics of such a learner are cumulative.
      ...(selfDirected && { metrics: updates.rows.at(-1)?.report.metrics ?? {} }),
      alarms: [...figures.alarms, ...offTaskAlarms(offTask, settings.alarms)],
      ...{ validation: validation ?? null, best, test, offTask, digest: updates.curve },
    }
  }

  /**
   * The error for a caller whose signal stopped the training. If the host program is exiting, the promise never
   * resolves, so that the script does not continue.
   */
  async #stopped(cause: Stopped): Promise<ManyworldsError> {
    if (await this.#end('interrupted', undefined)) await new Promise<never>(() => {})
    const { updates, control } = this.#parts
    const hint = control.file === undefined ? '' : `; continue with \`resume: '${this.id}'\``
    return new ManyworldsError(
      'TRAINING_STOPPED',
      `training '${this.id}' was stopped after ${updates.rows.length} updates${hint}`,
      { cause },
    )
  }

  /** The process exits without closing the training. */
  readonly #leave = () => this.#parts.record.close(this.#busy ? 'interrupted' : 'finished')

  /** True if the host program is exiting. */
  async #end(how: 'finished' | 'interrupted' | 'failed', error: Error | undefined): Promise<boolean> {
    const { trainer, record, runs, served, observer, sinks, host, control } = this.#parts
    this.#closed = true
    process.off('exit', this.#leave)
    // Don't wait for collections that were started ahead. If the runs were stopped before, their grace period is
    // already set.
    if (!runs.stopped) runs.stop(0)
    await this.#ahead.close()
    await trainer.close()
    await served.close()
    await sinks.close()
    try {
      record.close(how, error && wordsOf(error).message)
    } catch (problem) {
      // The disk may be full; report why the training ended instead.
      if (error === undefined) throw problem
    }
    observer.end({ error, interrupted: how === 'interrupted' })
    return host?.ended(control) ?? false
  }

  #explained(error: unknown): unknown {
    const { updates, versions, control } = this.#parts
    if (!ManyworldsError.is(error)) return error
    const where = `training '${this.id}' failed at update ${updates.rows.length}; version ${versions.current.ref.version} was kept`
    const hint = control.file === undefined ? '' : `; fix the cause, then continue with \`resume: '${this.id}'\``
    return new ManyworldsError(error.code, `${where}: ${error.message}${hint}`, { cause: error })
  }
}
