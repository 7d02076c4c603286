import { ManyworldsError } from '../errors.ts'
import type { TrajectoryParts } from '../trajectory/trajectory.ts'
import { type AdvantageSettings, checkAdvantages, type Normalizer } from './advantage-settings.ts'
import { nextRunningMean, type RunningMean } from './advantages.ts'
import { type AlarmSettings, Alarms } from './alarms.ts'
import { ByteReader, ByteWriter } from './bytes.ts'
import { type LastValues, rowsOf } from './episode-rows.ts'
import { type Episode, episodesOf } from './episodes.ts'
import { checkFailedPolicy, type FailedPolicy } from './failed-rollouts.ts'
import type { Learner, Metrics, Published } from './learner.ts'
import type { Row } from './row.ts'

export interface TrainerOptions {
  readonly learner: Learner
  /** How good each action was. Default: `{ name: 'grpo' }`. */
  readonly advantages?: AdvantageSettings
  /** What rollouts count that have no reward. Default: they are left out. */
  readonly failed?: FailedPolicy
  /** What the loss is divided by. Default: the actions of the batch. */
  readonly normalizer?: Normalizer
  /** When a training that goes wrong is reported. */
  readonly alarms?: AlarmSettings
}

/** What came of one batch. */
export interface TrainReport {
  /** Of the policy after it. The same as before if nothing could be learned. */
  readonly version: number
  readonly episodes: number
  /** Those that were learned from. */
  readonly trained: number
  readonly reward: number | null
  readonly successRate: number | null
  /** Episodes of which `reward` and `length`, and of which `successRate`, are the means. */
  readonly rewarded: number
  readonly judged: number
  /** Actions per episode; of a language model, tokens. */
  readonly length: number | null
  /** Groups whose episodes all had the same reward, and groups of one: nothing can be learned from them. */
  readonly skippedGroups: number
  /** Rollouts without a reward that were left out. */
  readonly dropped: number
  /** How many versions older than the learner the policy was that acted, over the actions that were learned from. Null: there were none. */
  readonly staleness: Staleness | null
  /** Loss, entropy, KL, clip fraction, gradient norm, …: what the learner says. */
  readonly metrics: Metrics
  /** What looks wrong, in words. */
  readonly alarms: readonly string[]
}

export interface Staleness {
  readonly mean: number
  readonly max: number
}

/** "MWRT", as bytes. */
const MAGIC = 0x5452574d

/**
 * Makes an agent better from what it did: takes trajectories, says how good each of their actions was, and has a learner change the policy.
 * A batch of any size is learned from, and the result does not depend on the order in which its trajectories came.
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

  /** Begins, or goes on from what `save` gave. */
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

  /** Learns from trajectories. Those without a reward, and groups that teach nothing, are left out and counted. */
  async trainStep(trajectories: Iterable<TrajectoryParts>): Promise<TrainReport> {
    if (this.#version === undefined)
      throw new ManyworldsError('LEARNER_INVALID', 'call `start({ seed })` of a trainer before trainStep()')
    const all = [...trajectories]
    const { groups, dropped, refused, drifted } = episodesOf(all, this.#failed)
    if (groups.length === 0 && refused.length > 0)
      throw new ManyworldsError(
        'ROW_INVALID',
        `nothing of ${all.length} episodes can be learned from: ${refused[0]}${refused.length > 1 ? `; and ${refused.length - 1} more such calls` : ''}`,
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
      ...{ version: this.#version, episodes: all.length, trained: made.episodes, dropped, metrics },
      ...{ skippedGroups: made.flat + made.single, staleness, ...figures(episodes, all) },
    }
    const alarms = this.#alarms.look({ ...report, trajectories: all })
    return { ...report, alarms: [...alarms, ...refusals(refused)] }
  }

  /** The learner says them before it changes: on-policy, it is the version that acted. */
  async #lastValues(episodes: readonly Episode[]): Promise<LastValues> {
    const cut = episodes.filter(({ isCut }) => isCut)
    if (cut.length === 0) return new Map()
    if (this.#learner.values === undefined)
      throw new ManyworldsError(
        'LEARNER_INVALID',
        "advantages by 'gae' need a learner with `values`: episodes that were cut short count with the value of their last observation",
      )
    const unseen = cut.find(({ finalObservation }) => finalObservation === undefined)
    if (unseen)
      throw new ManyworldsError(
        'ROW_INVALID',
        `task '${unseen.task}', rollout ${unseen.rollout}, was cut short, and does not say what was seen last: advantages by 'gae' need it`,
      )
    const values = await this.#learner.values(cut.map(({ finalObservation }) => finalObservation))
    return new Map(cut.map((episode, i) => [episode, values[i]!]))
  }

  publish(): Promise<Published> {
    return this.#learner.publish()
  }

  /** All that the next step depends on. From there, the same trajectories give the same numbers. */
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

/** Of language models: what was learned from, and what could not be. */
function tokenFigures(episodes: readonly Episode[], refusedCalls: number, driftedTurns: number): Metrics {
  const isOfTokens = refusedCalls > 0 || episodes.some(({ lines }) => lines.length > 0)
  if (!isOfTokens) return {}
  return { tokens: episodes.reduce((sum, { decisions }) => sum + decisions, 0), driftedTurns, refusedCalls }
}

const refusals = (refused: readonly string[]): string[] =>
  refused.length === 0
    ? []
    : [
        `nothing was learned from ${refused.length} call${refused.length === 1 ? '' : 's'} of the model, such as ${refused[0]}`,
      ]

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
  const judged = all.flatMap(({ grade, episode }) => (grade ? (grade.success ?? []) : (episode?.success ?? [])))
  return {
    reward: mean(episodes.map(({ reward }) => reward)),
    successRate: mean(judged.map((success) => (success ? 1 : 0))),
    length: mean(episodes.map(({ decisions }) => decisions)),
    rewarded: episodes.length,
    judged: judged.length,
  }
}

function readState(state: Uint8Array) {
  try {
    const reader = new ByteReader(state)
    if (reader.u32() !== MAGIC) throw new RangeError('it does not begin as one')
    const running = { mean: reader.f64(), weight: reader.f64() }
    const alarms: unknown = JSON.parse(reader.text())
    return { running, alarms, learner: reader.bytes() }
  } catch (cause) {
    throw new ManyworldsError('LEARNER_INVALID', `this is not the state of a trainer: ${(cause as Error).message}`, {
      cause,
    })
  }
}
