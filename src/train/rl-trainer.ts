import { ManyworldsError } from '../errors.ts'
import type { TrajectoryParts } from '../trajectory/trajectory.ts'
import { type AdvantageSettings, checkAdvantages, type Normalizer } from './advantage-settings.ts'
import { nextRunningMean, type RunningMean } from './advantages.ts'
import { type AlarmSettings, Alarms } from './alarms.ts'
import { ByteReader, ByteWriter } from './bytes.ts'
import { type LastValues, rowsOf } from './episode-rows.ts'
import { type Episode, episodesOf } from './episodes.ts'
import { checkFailedPolicy, type FailedPolicy, solvedOf } from './failed-rollouts.ts'
import type { Learner, Metrics, Published } from './learner.ts'
import type { Row } from './row.ts'

export interface TrainerOptions {
  readonly learner: Learner
  /** How advantages are computed. Default: `{ name: 'grpo' }`. */
  readonly advantages?: AdvantageSettings
  /** What rollouts without a reward count as. Default: they are left out. */
  readonly failed?: FailedPolicy
  /** The denominator of the loss. Default: the actions of the batch. */
  readonly normalizer?: Normalizer
  /** Thresholds for alarms. */
  readonly alarms?: AlarmSettings
}

/** The result of one batch. */
export interface TrainReport {
  /** The version after the batch; unchanged if nothing could be learned. */
  readonly version: number
  readonly episodes: number
  /** Episodes that were trained on. */
  readonly trained: number
  readonly reward: number | null
  readonly successRate: number | null
  /** The number of episodes in the means `reward` and `length`, and in `successRate`. */
  readonly rewarded: number
  readonly judged: number
  /** Actions per episode; for a language model, tokens. */
  readonly length: number | null
  /** Groups with identical rewards and groups of one, from which nothing can be learned. */
  readonly skippedGroups: number
  /** Rollouts that were left out, and how many for which reason. */
  readonly dropped: number
  readonly dropReasons: DropReasons
  /**
   * How many versions older than the learner the acting policy was, over the rows that were trained on. Null if there
   * were none.
   */
  readonly staleness: Staleness | null
  /** Metrics of the learner: loss, entropy, KL, clip fraction, gradient norm, … */
  readonly metrics: Metrics
  /** Messages about what looks wrong. */
  readonly alarms: readonly string[]
}

/**
 * - `failed`: the agent failed (`failed` of the algorithm says what that counts as).
 * - `lost`: something else failed, or it was cancelled.
 * - `ungraded`: it has no grade, or its grader failed.
 * - `refused`: its model calls cannot be trained on; an alarm has the reason.
 * - `empty`: no policy chose anything in it.
 */
export type DropReasons = Readonly<Partial<Record<'failed' | 'lost' | 'ungraded' | 'refused' | 'empty', number>>>

export interface Staleness {
  readonly mean: number
  readonly max: number
}

/** "MWRT", as bytes. */
const MAGIC = 0x5452574d

/**
 * Improves an agent from its trajectories: computes the advantage of each action, and has a learner update the policy.
 * Batches can have any size, and the result does not depend on the order of their trajectories.
 *
 * @example
 * const trainer = new RLTrainer({ learner, advantages: { name: 'grpo' } })
 * await trainer.start({ seed: 1 })
 * const { version, metrics } = await trainer.trainStep(trajectories)
 */
export class RLTrainer {
  readonly #learner: Learner
  readonly #advantages: AdvantageSettings
  readonly #failed: FailedPolicy
  readonly #normalizer: Normalizer
  readonly #alarms: Alarms
  #running: RunningMean = { mean: 0, weight: 0 }
  #version: number | undefined

  constructor({
    learner,
    advantages = { name: 'grpo' },
    failed = 'drop',
    normalizer = 'actions',
    alarms,
  }: TrainerOptions) {
    checkAdvantages(advantages)
    checkFailedPolicy(failed)
    if (normalizer !== 'actions' && normalizer !== 'episodes')
      throw new ManyworldsError(
        'CONFIG_INVALID',
        `\`normalizer\` must be 'actions' or 'episodes', it is '${String(normalizer)}'`,
      )
    this.#learner = learner
    this.#advantages = advantages
    this.#failed = failed
    this.#normalizer = normalizer
    this.#alarms = new Alarms(alarms)
  }

  /** Starts the training, or resumes it from what `save` returned. */
  async start({ seed, state }: { readonly seed: number | string; readonly state?: Uint8Array }): Promise<Published> {
    const before = state && readState(state)
    const first = await this.#learner.start({ seed, ...(before && { state: before.learner }) })
    if (before) {
      this.#running = before.running
      this.#alarms.load(before.alarms)
    }
    this.#version = first.ref.version
    return first
  }

  /**
   * Trains on trajectories. Those without a reward, and groups from which nothing can be learned, are left out and
   * counted.
   */
  async trainStep(trajectories: Iterable<TrajectoryParts>): Promise<TrainReport> {
    if (this.#version === undefined)
      throw new ManyworldsError(
        'LEARNER_INVALID',
        'the trainer was not started; call `start({ seed })` before trainStep()',
      )
    const all = [...trajectories]
    const { groups, dropReasons, refused, drifted } = episodesOf(all, this.#failed)
    const dropped = Object.values(dropReasons).reduce((sum, count) => sum + count, 0)
    if (groups.length === 0 && refused.length > 0)
      throw new ManyworldsError(
        'ROW_INVALID',
        `none of the ${all.length} episodes can be trained on: ${refused[0]}${refused.length > 1 ? `; and ${refused.length - 1} more such calls` : ''}`,
      )
    const lasts = this.#advantages.name === 'gae' ? await this.#lastValues(groups.flat()) : undefined
    const made = rowsOf(groups, this.#advantages, this.#normalizer, this.#running, lasts)
    const staleness = stalenessOf(made.rows, this.#version)
    const learned = await this.#learner.update({ rows: made.rows })
    const { explainedVariance } = made
    const tokens = tokenFigures(groups.flat(), refused.length, drifted)
    const metrics = { ...learned, ...(explainedVariance !== undefined && { explainedVariance }), ...tokens }
    if (made.rows.length > 0) this.#version = (await this.#learner.publish()).ref.version
    this.#running = nextRunningMean(this.#running, made.returns)
    const episodes = groups.flat()
    const report = {
      ...{ version: this.#version, episodes: all.length, trained: made.episodes, dropped, dropReasons, metrics },
      ...{ skippedGroups: made.flat + made.single, staleness, ...figures(episodes, all) },
    }
    const alarms = this.#alarms.check({ ...report, trajectories: all })
    return { ...report, alarms: [...alarms, ...refusals(refused)] }
  }

  /** Computed before the update: on-policy, the learner is still the version that acted. */
  async #lastValues(episodes: readonly Episode[]): Promise<LastValues> {
    const cut = episodes.filter(({ isCut }) => isCut)
    if (cut.length === 0) return new Map()
    if (this.#learner.values === undefined)
      throw new ManyworldsError(
        'LEARNER_INVALID',
        "advantages by 'gae' need a learner with `values`, because truncated episodes count with the value of their final observation",
      )
    const unseen = cut.find(({ finalObservation }) => finalObservation === undefined)
    if (unseen)
      throw new ManyworldsError(
        'ROW_INVALID',
        `task '${unseen.task}', rollout ${unseen.rollout}, was truncated and has no final observation, but advantages by 'gae' need it`,
      )
    const values = await this.#learner.values(cut.map(({ finalObservation }) => finalObservation))
    return new Map(cut.map((episode, i) => [episode, values[i]!]))
  }

  publish(): Promise<Published> {
    return this.#learner.publish()
  }

  /** Everything that the next step depends on. After resuming from it, the same trajectories give the same numbers. */
  async save(): Promise<Uint8Array> {
    const out = new ByteWriter()
    out.u32(MAGIC)
    out.f64(this.#running.mean)
    out.f64(this.#running.weight)
    out.text(JSON.stringify(this.#alarms.save()))
    out.bytes(await this.#learner.save())
    return out.finish()
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#learner[Symbol.asyncDispose]?.()
  }
}

/** Metrics for language models: tokens trained on, and calls that could not be used. */
function tokenFigures(episodes: readonly Episode[], refusedCalls: number, driftedTurns: number): Metrics {
  const isOfTokens = refusedCalls > 0 || episodes.some(({ lines }) => lines.length > 0)
  if (!isOfTokens) return {}
  return { tokens: episodes.reduce((sum, { decisions }) => sum + decisions, 0), driftedTurns, refusedCalls }
}

const refusals = (refused: readonly string[]): string[] =>
  refused.length === 0
    ? []
    : [`${refused.length} model call${refused.length === 1 ? '' : 's'} could not be trained on, such as ${refused[0]}`]

function stalenessOf(rows: readonly Row[], version: number): Staleness | null {
  if (rows.length === 0) return null
  let [sum, max] = [0, 0]
  for (const row of rows) {
    sum += version - row.version
    max = Math.max(max, version - row.version)
  }
  return { mean: sum / rows.length, max }
}

function figures(episodes: readonly Episode[], all: readonly TrajectoryParts[]) {
  const mean = (values: readonly number[]) =>
    values.length === 0 ? null : values.reduce((sum, value) => sum + value, 0) / values.length
  const judged = solvedOf(all).filter((solved) => solved !== null)
  return {
    reward: mean(episodes.map(({ reward }) => reward)),
    successRate: mean(judged.map(Number)),
    length: mean(episodes.map(({ decisions }) => decisions)),
    rewarded: episodes.length,
    judged: judged.length,
  }
}

function readState(state: Uint8Array) {
  try {
    const reader = new ByteReader(state)
    if (reader.u32() !== MAGIC) throw new RangeError('the magic number does not match')
    const running = { mean: reader.f64(), weight: reader.f64() }
    const alarms: unknown = JSON.parse(reader.text())
    return { running, alarms, learner: reader.bytes() }
  } catch (cause) {
    throw new ManyworldsError(
      'LEARNER_INVALID',
      `these bytes are not the state of a trainer, or they are damaged: ${(cause as Error).message}`,
      {
        cause,
      },
    )
  }
}
