import { ManyworldsError } from '../errors.ts'
import type { AdvantageSettings, Normalizer } from './advantage-settings.ts'
import { type GroupAdvantages, grpo, minusBaseline, normalized, type RunningMean, rloo } from './advantages.ts'
import { type BestOptions, bestRollouts } from './best-rollouts.ts'
import type { Episode } from './episodes.ts'
import { gae, returns } from './returns.ts'
import type { ActionRow, Row } from './row.ts'
import { tokenRow } from './token-lines.ts'
import { explainedVariance } from './value-loss.ts'

export interface EpisodeRows {
  readonly rows: readonly Row[]
  /**
   * Groups with identical rewards, and groups of one, for algorithms that compare within groups: nothing can be learned
   * from them.
   */
  readonly flat: number
  readonly single: number
  /** The number of episodes that the rows were made from. */
  readonly episodes: number
  /** The return of each action, for a running baseline. */
  readonly returns: readonly number[]
  /**
   * With 'gae': the fraction of the returns' variance that the values explain; undefined if the returns do not vary.
   */
  readonly explainedVariance: number | undefined
}

/** The value of the final observation of truncated episodes. */
export type LastValues = ReadonlyMap<Episode, number>

/**
 * Makes a row of each action that is trained on. Weights are fractions of the whole batch, including groups that teach
 * nothing. Otherwise one group with variance among many without would make as large a step as a whole batch.
 */
export function rowsOf(
  groups: readonly (readonly Episode[])[],
  settings: AdvantageSettings,
  normalizer: Normalizer,
  running: RunningMean,
  lasts: LastValues = new Map(),
): EpisodeRows {
  const compared = isCompared(settings) ? compare(groups, settings) : undefined
  const skipped = new Set(compared && [...compared.flat, ...compared.single])
  const used = groups.flatMap((members, group) =>
    skipped.has(group)
      ? []
      : members
          .map((episode, i) => ({ episode, advantage: compared?.advantages[group]?.[i] }))
          .filter(({ advantage }) => settings.name !== 'best' || advantage === 1),
  )
  const all = used.map(({ episode }) => episode)
  const episodeReturns = settings.name === 'reinforce' ? all.map((one) => returnsOf(one, settings.discount ?? 1)) : []
  const baseline = settings.name === 'reinforce' ? baselineOf(settings, episodeReturns, running) : 0
  const batch = groups.flat()
  const decisions = batch.reduce((sum, episode) => sum + episode.decisions, 0)
  const made = used.flatMap(({ episode, advantage }, i): Row[] => {
    const weight = normalizer === 'actions' ? 1 / decisions : 1 / (batch.length * episode.decisions)
    if (episode.lines.length > 0) {
      const shared = advantage ?? episodeAdvantage(episode, settings, episodeReturns[i]!, baseline)
      return episode.lines.map((line) => tokenRow(line, shared, weight))
    }
    const { advantages, targets } =
      advantage === undefined
        ? stepAdvantages(episode, settings, episodeReturns[i], baseline, lasts)
        : equalAdvantages(episode, advantage)
    return episode.actions.map((step, t) => rowOf(step, advantages[t]!, targets?.[t], weight, episode))
  })
  const rows = 'normalize' in settings && settings.normalize ? normalizedRows(made) : made
  return {
    rows,
    flat: compared?.flat.length ?? 0,
    single: compared?.single.length ?? 0,
    episodes: all.length,
    returns: episodeReturns.flatMap((values) => [...values]),
    explainedVariance: settings.name === 'gae' ? explainedByValues(all, rows) : undefined,
  }
}

/** A line of tokens counts as one sample, because all its tokens have the same advantage. */
function normalizedRows(rows: readonly Row[]): readonly Row[] {
  const advantages = normalized(
    rows.map((row) => (row.kind === 'action' ? row.advantage : row.advantage[row.mask.indexOf(1)]!)),
  )
  return rows.map((row, i) =>
    row.kind === 'action'
      ? { ...row, advantage: advantages[i]! }
      : { ...row, advantage: row.advantage.map((_, at) => (row.mask[at] === 1 ? advantages[i]! : 0)) },
  )
}

function explainedByValues(episodes: readonly Episode[], rows: readonly Row[]): number | undefined {
  const values = episodes.flatMap(({ actions }) => actions.map((step) => step.value!))
  return explainedVariance(
    values,
    rows.map((row) => (row as ActionRow).return!),
  )
}

/** The return from each action on. A language model gets one return for the whole episode. */
const returnsOf = (episode: Episode, discount: number): Float64Array =>
  episode.lines.length > 0 ? Float64Array.of(episode.reward) : returns(episode.rewards, discount)

function episodeAdvantage(
  { task }: Episode,
  { name }: AdvantageSettings,
  gained: Float64Array,
  baseline: number,
): number {
  if (name === 'gae')
    throw new ManyworldsError(
      'CONFIG_INVALID',
      `advantages by 'gae' need a value head, but the language model of task '${task}' has none: use 'grpo', 'rloo' or 'reinforce'`,
    )
  return gained[0]! - baseline
}

type Compared = AdvantageSettings & { readonly name: 'grpo' | 'rloo' | 'best' }

const isCompared = (settings: AdvantageSettings): settings is Compared =>
  settings.name === 'grpo' || settings.name === 'rloo' || settings.name === 'best'

function compare(groups: readonly (readonly Episode[])[], settings: Compared): GroupAdvantages {
  const rewards = groups.map((members) => members.map(({ reward }) => reward))
  if (settings.name === 'rloo') return rloo(rewards)
  return settings.name === 'grpo' ? grpo(rewards, settings) : imitated(rewards, settings)
}

/**
 * 1 for rollouts to imitate. A group without one teaches nothing; a group in which all rollouts are right does teach.
 */
function imitated(rewards: readonly (readonly number[])[], settings: BestOptions): GroupAdvantages {
  const best = rewards.map((group) => new Set(bestRollouts(group, settings)))
  return {
    advantages: rewards.map((group, at) => Float64Array.from(group, (_, i) => (best[at]!.has(i) ? 1 : 0))),
    flat: best.flatMap((chosen, at) => (chosen.size === 0 ? [at] : [])),
    single: [],
  }
}

interface Advantages {
  readonly advantages: ArrayLike<number>
  /** Training targets of the value head. */
  readonly targets?: ArrayLike<number>
}

const equalAdvantages = ({ actions }: Episode, advantage: number): Advantages => ({
  advantages: new Float64Array(actions.length).fill(advantage),
})

function stepAdvantages(
  episode: Episode,
  settings: AdvantageSettings,
  gained: Float64Array | undefined,
  baseline: number,
  lasts: LastValues,
): Advantages {
  if (gained) return { advantages: minusBaseline(gained, baseline), targets: gained }
  const { discount = 1, lambda = 1 } = settings as { discount?: number; lambda?: number }
  const values = episode.actions.map((step) => step.value ?? missingValue(episode, step.index))
  // A truncated episode would have continued from its final observation; after a terminated one nothing follows.
  const last = episode.isCut ? lasts.get(episode)! : 0
  const { advantages, returns: targets } = gae(episode.rewards, values, { discount, lambda, last })
  return { advantages, targets }
}

function baselineOf(
  { baseline = 'batch' }: AdvantageSettings & { name: 'reinforce' },
  gained: readonly Float64Array[],
  running: RunningMean,
): number {
  if (baseline === 'none') return 0
  if (baseline === 'running') return running.mean
  let [sum, count] = [0, 0]
  for (const values of gained)
    for (const value of values) {
      sum += value
      count++
    }
  return count === 0 ? 0 : sum / count
}

function rowOf(
  step: Episode['actions'][number],
  advantage: number,
  target: number | undefined,
  weight: number,
  { task, rollout }: Episode,
): ActionRow {
  const { observation, candidates, action, choice, logProb, policy } = step
  if (candidates === undefined || choice === undefined || logProb === null || policy === null)
    throw new ManyworldsError(
      'ROW_INVALID',
      `step ${step.index} of task '${task}', rollout ${rollout}, cannot be trained on: its ${candidates === undefined || choice === undefined ? 'candidates were' : 'log-probability was'} not recorded; act with a policy of manyworlds/train`,
    )
  if (step.mode === 'greedy')
    throw new ManyworldsError(
      'ROW_INVALID',
      `step ${step.index} of task '${task}', rollout ${rollout}, cannot be trained on: it was chosen in mode 'greedy', which does not explore; collect in mode 'sample'`,
    )
  return {
    ...{ kind: 'action', observation, candidates, action, index: choice, behavior: logProb, advantage, weight },
    ...(target !== undefined && { return: target }),
    version: policy.version,
  }
}

function missingValue({ task, rollout }: Episode, step: number): never {
  throw new ManyworldsError(
    'ROW_INVALID',
    `step ${step} of task '${task}', rollout ${rollout}, has no value: advantages by 'gae' need a policy with a value head`,
  )
}
