import type { Policy } from '../../agents/policy.ts'
import { ManyworldsError } from '../../errors.ts'
import type { Trajectory } from '../../trajectory/trajectory.ts'
import type { Algorithm } from '../algorithm.ts'
import { rewardOf, solvedOf } from '../failed-rollouts.ts'
import type { Want } from '../learner.ts'
import type { TrainReport } from '../rl-trainer.ts'
import type { GroupWatch } from './collection-ahead.ts'
import { batchOf, EMPTY_CURVE, nextCurve } from './curve.ts'
import type { LearnedFrom, Trainer } from './learning-trainer.ts'
import { tasksOf } from './next-epoch.ts'
import type { TrainingObserver } from './observer.ts'
import { mean, plainReport } from './plain-report.ts'
import type { Sampler } from './sampler.ts'
import { samplerMismatch } from './sampler-mismatch.ts'
import { runSeed } from './seeds.ts'
import type { Settings } from './settings.ts'
import { shuffledRewards } from './shuffled-rewards.ts'
import type { NamedTask, TaskSets } from './task-sets.ts'
import type { PlanRow, TrainingRecord, UpdateRow } from './training-record.ts'
import type { TrainingRuns } from './training-runs.ts'
import type { Versions } from './versions.ts'

interface Parts {
  readonly settings: Settings
  readonly policy: Policy
  /** Undefined if the user provides the learner. */
  readonly algorithm: Required<Algorithm> | undefined
  readonly sets: TaskSets
  readonly record: TrainingRecord
  readonly runs: TrainingRuns
  readonly trainer: Trainer
  readonly versions: Versions
  readonly sampler: Sampler
  readonly observer: TrainingObserver
}

export interface EpochTarget {
  readonly tasksPerEpoch: number
  /** The last epoch to run, which includes the test. */
  readonly epochs: number
}

/** A finished collection. */
export interface Collected {
  readonly plan: PlanRow
  /** Sorted by `compareRollouts`. */
  readonly trajectories: readonly Trajectory[]
  readonly collectMs: number
}

/** An alarm is raised after this many updates in a row without anything to learn from. */
const UPDATES_WITHOUT_VARIANCE = 5
/** An alarm is raised if this fraction of episodes failed; it quotes the first error up to this length. */
const MANY_FAILED = 0.1
const REASON_CHARS = 200

/**
 * The updates of a training: plan, collect, learn, store. A plan is stored before its episodes run; an update is stored
 * together with its version and the sampler in one transaction, after its files. A training that is killed continues
 * from there, and computes the same numbers.
 */
export class Updates {
  readonly #parts: Parts
  readonly #tasks: ReadonlyMap<string, NamedTask>
  readonly #rows: UpdateRow[]
  /** Plans without an update, in order. */
  readonly #planned: Map<number, PlanRow>
  /** The plans among them that an earlier session made. */
  readonly #earlier: ReadonlySet<number>

  constructor(parts: Parts) {
    const { updates, plans } = parts.record.history
    this.#parts = parts
    this.#tasks = new Map(parts.sets.train.map((task) => [task.id, task]))
    this.#rows = [...updates]
    this.#planned = new Map(plans.map((plan) => [plan.number, plan]))
    this.#earlier = new Set(this.#planned.keys())
  }

  /** All stored updates, in order. */
  get rows(): readonly UpdateRow[] {
    return this.#rows
  }

  /** SHA-256 of the curve up to here. */
  get curve(): string {
    return this.#rows.at(-1)?.curveSha ?? EMPTY_CURVE
  }

  /** How many tasks of an epoch were trained on. */
  tasksOf(epoch: number): number {
    return tasksOf(this.#rows, epoch)
  }

  /** The versions that plans without an update act with. */
  get acting(): readonly number[] {
    return [...this.#planned.values()].map(({ version }) => version)
  }

  /**
   * The plan of an update: from an earlier session, or a new one with the current version. Undefined if it would belong
   * to an epoch that was not requested.
   */
  plan(number: number, target: EpochTarget): PlanRow | undefined {
    const { record, settings, sampler, versions } = this.#parts
    const known = this.#earlier.has(number) ? this.#planned.get(number) : undefined
    const epoch = known?.epoch ?? this.#nextEpoch(target.tasksPerEpoch)
    if (epoch > target.epochs) return undefined
    if (known) {
      sampler.skip(number, known.tasks)
      return known
    }
    const plan: PlanRow = {
      ...{ number, epoch, version: versions.current.ref.version },
      run: this.#runOf(number),
      seed: runSeed(settings.seed, 'collect', number),
      tasks: sampler.draw(number, settings.tasksPerUpdate),
    }
    record.plan(plan)
    this.#planned.set(number, plan)
    return plan
  }

  /** The plan of what a learner requested: from an earlier session, or a new one. */
  planOf({ epoch, version, tasks, seedOf }: Extract<Want, { kind: 'collect' }>): PlanRow {
    const { record, settings } = this.#parts
    const number = this.#rows.length
    const known = this.#planned.get(number)
    if (known) return known
    const seed = runSeed(settings.seed, 'collect', seedOf ?? number)
    const plan: PlanRow = { number, epoch, version, run: this.#runOf(number), seed, tasks: [...tasks] }
    record.plan(plan)
    this.#planned.set(number, plan)
    return plan
  }

  /** The epoch that the next new plan belongs to. An epoch ends with the update that completes its tasks. */
  #nextEpoch(tasksPerEpoch: number): number {
    const open = [...this.#planned.values()]
    const last = (open.at(-1) ?? this.#rows.at(-1))?.epoch ?? 0
    const planned = open.reduce(
      (sum, { epoch, tasks }) => sum + (epoch === last ? tasks.length : 0),
      this.tasksOf(last),
    )
    return last > 0 && planned < tasksPerEpoch ? last : last + 1
  }

  async collect(plan: PlanRow, watch: GroupWatch): Promise<Collected> {
    const { settings, runs, versions, observer } = this.#parts
    const { rollouts } = settings
    const tasks = this.#named(plan.tasks)
    const { run: runId, seed, number } = plan
    const run = { runId, seed, rollouts, tasks, split: 'train', mode: 'sample' } as const
    const by = await versions.get(plan.version)
    const begun = performance.now()
    observer.run(`update ${number}`, tasks.length * rollouts, runId)
    let trajectories = await runs.collect({ ...run, by, watch })
    // What made all of them fail may have been fixed.
    if (this.#earlier.has(number) && trajectories.every(isFailed))
      trajectories = await runs.collect({ ...run, by, retryFailed: true })
    const [failure] = trajectories.flatMap(failureOf)
    if (failure && trajectories.every((one) => failureOf(one).length > 0))
      throw new ManyworldsError(
        'TRAINING_FAILED',
        `all ${trajectories.length} episodes of update ${number} failed; the first error is ${failure.code}: ${failure.message}`,
      )
    if (trajectories.every((one) => rewardOf(one) === null && failureOf(one).length === 0))
      throw new ManyworldsError(
        'TRAINING_FAILED',
        `no episode of update ${number} has a reward; give agent '${settings.agent.name}', its tasks or the training a grader (\`grade\`)`,
      )
    return { plan, trajectories, collectMs: performance.now() - begun }
  }

  /** Trains on a collection, and stores the result. */
  async learn({ plan, trajectories, collectMs }: Collected): Promise<UpdateRow> {
    const { settings, policy, algorithm, record, trainer, versions, sampler, observer } = this.#parts
    const { number, epoch } = plan
    const { control, seed } = settings
    const begun = performance.now()
    const batch = control === 'shuffled' ? shuffledRewards(trajectories, seed, number) : trajectories
    const { report, published, state } =
      control === 'off' ? await this.#withoutLearning(trajectories) : await trainer.learn(batch, await this.#from(plan))
    const isNew = published.ref.version !== versions.current.ref.version
    const version = isNew ? await versions.write(published, number) : undefined
    const stateSha = await record.writeFile(state)
    const { members, batchSha } = batchOf(trajectories)
    const weights = published.ref.digest
    const point = { number, batchSha, version: published.ref.version, weights, report }
    const alarms = [
      ...report.alarms,
      ...this.#withoutVariance(report),
      ...samplerMismatch(report, algorithm, policy.learning),
      ...manyFailed(trajectories),
      ...this.#withoutVerdicts(report),
    ]
    const update: UpdateRow = {
      ...{ number, epoch, members, batchSha, stateSha, collectMs },
      versionIn: plan.version,
      versionOut: version?.version ?? null,
      report: { ...report, alarms, tokens: tokensOf(trajectories) },
      trainMs: performance.now() - begun,
      curveSha: nextCurve(this.curve, point),
    }
    this.#recordResults(trajectories)
    record.update({ update, ...(version && { version }), sampler: sampler.state() })
    this.#planned.delete(number)
    this.#rows.push(update)
    if (version) versions.stored(version, published)
    observer.update(update)
    await this.thin(number)
    return update
  }

  async #from({ number, run, tasks, version }: PlanRow): Promise<LearnedFrom> {
    const by = await this.#parts.versions.get(version)
    return { number, run, tasks: this.#named(tasks), by, isResumed: this.#earlier.has(number) }
  }

  #named(ids: readonly string[]): NamedTask[] {
    return ids.map((id) => {
      const task = this.#tasks.get(id)
      if (task === undefined)
        throw new ManyworldsError('LEARNER_FAILED', `the learner requested task '${id}', which is not a training task`)
      return task
    })
  }

  /** Removes the steps of trajectories that are not kept, from an update that is stored. */
  async thin(number: number): Promise<void> {
    const { record, settings } = this.#parts
    await record.thin(this.#runOf(number), settings.keepTrajectories)
  }

  #runOf(number: number): string {
    return `${this.#parts.record.id}.u${String(number).padStart(5, '0')}`
  }

  /** The result of a batch without training on it. */
  async #withoutLearning(batch: readonly Trajectory[]) {
    const { trainer, versions } = this.#parts
    const report = plainReport(batch, versions.current.ref.version)
    return { report, published: versions.current, state: await trainer.save() }
  }

  #withoutVariance({ trained }: TrainReport): string[] {
    if (trained > 0 || this.#parts.settings.control === 'off') return []
    const earlier = this.#rows.slice(-UPDATES_WITHOUT_VARIANCE + 1)
    return earlier.length === UPDATES_WITHOUT_VARIANCE - 1 && earlier.every(({ report }) => report.trained === 0)
      ? [`no group of the last ${UPDATES_WITHOUT_VARIANCE} updates had differing rewards, so nothing was learned`]
      : []
  }

  #withoutVerdicts({ judged }: TrainReport): string[] {
    if (this.#parts.settings.curriculum === undefined || judged > 0) return []
    return [
      '`curriculum` has no effect: nothing says whether an episode is solved; give the agent, its tasks or the training a grader, or have the environment return `success`',
    ]
  }

  #recordResults(trajectories: readonly Trajectory[]): void {
    const solved = solvedOf(trajectories)
    const byTask = Map.groupBy(trajectories.keys(), (index) => trajectories[index]!.task)
    for (const [task, rollouts] of byTask) {
      const judged = rollouts.flatMap((index) => solved[index] ?? [])
      this.#parts.sampler.recordResults(task, judged.length, judged.filter(Boolean).length)
    }
  }
}

/** An alarm if many episodes of a batch failed. */
function manyFailed(trajectories: readonly Trajectory[]): string[] {
  const failures = trajectories.flatMap(failureOf)
  const [first] = failures
  if (first === undefined || failures.length < MANY_FAILED * trajectories.length) return []
  return [
    `${failures.length} of ${trajectories.length} episodes of an update failed; the first error is ${first.code}: ${first.message.slice(0, REASON_CHARS)}`,
  ]
}

const isFailed = ({ ending }: Trajectory) => ending.kind === 'failed'

/** Why an episode has no result: it failed, or its grader failed. */
function failureOf({ ending, grade }: Trajectory): { readonly code: string; readonly message: string }[] {
  if (ending.kind === 'failed') return [ending.error]
  const error = grade?.error as { readonly code?: string; readonly message?: string } | undefined
  return error ? [{ code: error.code ?? 'GRADER_THREW', message: error.message ?? 'the grader failed' }] : []
}

const tokensOf = (trajectories: readonly Trajectory[]): number =>
  mean(trajectories.map(({ usage }) => (usage.inputTokens ?? 0) + (usage.outputTokens ?? 0))) ?? 0
