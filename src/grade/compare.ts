import { USAGE_KEYS, type Usage } from '../trajectory/usage.ts'
import { checkRange, type Estimate, estimate, type RewardOptions, rangeOf } from './intervals.ts'
import { checkConfidence, meanOf, type Range } from './mean-interval.ts'
import { type Outcome, resultOf } from './outcome.ts'
import { comparisonVerdict } from './verdict.ts'

export interface CompareOptions extends RewardOptions {
  /** What to call the runs in the verdict; A and B unless told otherwise. */
  readonly names?: readonly [a: string, b: string]
}

/** What runs A and B say about the tasks that both have. */
export interface Comparison {
  /** Tasks with a result in both. */
  readonly tasks: number
  /** Ids of tasks that only one of the runs has; they are left out. */
  readonly onlyInA: readonly string[]
  readonly onlyInB: readonly string[]
  /** Ids of tasks that both have, and for which one has no result; left out as well. */
  readonly withoutResult: readonly string[]
  readonly success: Difference | null
  /** Of tasks with a reward in both. */
  readonly reward: Difference | null
  /** Tasks that most rollouts of A left unsolved and most of B solved, and the other way round. */
  readonly flips: { readonly toSolved: readonly string[]; readonly toUnsolved: readonly string[] }
  /** What the runs used for a rollout of these tasks. No interval: this is what they did use. Null: not reported. */
  readonly usage: Readonly<Record<UsageFigure, UsedBy | null>>
  readonly verdict: string
  readonly warnings: readonly string[]
}

/** B minus A, paired by task: `value`, `low` and `high` are of the difference. */
export interface Difference extends Estimate {
  readonly a: number
  readonly b: number
}

export type UsageFigure = keyof Usage | 'runMs'

/** The mean per rollout, over tasks that report it in both runs. */
export interface UsedBy {
  readonly a: number
  readonly b: number
  readonly difference: number
}

const USAGE_FIGURES: readonly UsageFigure[] = [...USAGE_KEYS, 'runMs']

/** What the rollouts of one task came to in one run. */
class TaskSide {
  solved: number[] = []
  rewards: number[] = []
  used: Record<UsageFigure, number[]> = { inputTokens: [], outputTokens: [], cachedTokens: [], costUsd: [], runMs: [] }

  add(outcome: Outcome): void {
    const { solved, reward } = resultOf(outcome)
    if (solved === null) return
    this.solved.push(Number(solved))
    if (reward !== null) this.rewards.push(reward)
    for (const figure of USAGE_FIGURES) {
      const value = figure === 'runMs' ? outcome.runMs : outcome.usage?.[figure]
      if (value !== undefined && Number.isFinite(value)) this.used[figure].push(value)
    }
  }
}

interface Pair {
  readonly id: string
  readonly a: TaskSide
  readonly b: TaskSide
}

/** Compares two runs over the tasks that both have. Positive differences mean that B has more. */
export function compareRuns(a: Iterable<Outcome>, b: Iterable<Outcome>, options: CompareOptions = {}): Comparison {
  checkConfidence(options.confidence)
  const range = checkRange(options.rewardRange)
  const [sidesA, sidesB] = [sides(a), sides(b)]
  const pairs: Pair[] = []
  const withoutResult: string[] = []
  for (const [id, sideA] of sidesA) {
    const sideB = sidesB.get(id)
    if (!sideB) continue
    if (sideA.solved.length > 0 && sideB.solved.length > 0) pairs.push({ id, a: sideA, b: sideB })
    else withoutResult.push(id)
  }
  const success = successDifference(pairs, options)
  const reward = rewardDifference(pairs, options, range)
  const usage = Object.fromEntries(USAGE_FIGURES.map((figure) => [figure, usedBy(pairs, figure)]))
  return {
    tasks: pairs.length,
    onlyInA: [...sidesA.keys()].filter((id) => !sidesB.has(id)),
    onlyInB: [...sidesB.keys()].filter((id) => !sidesA.has(id)),
    withoutResult,
    success,
    reward,
    flips: flipsIn(pairs),
    usage: usage as Comparison['usage'],
    verdict: comparisonVerdict(success, options.names),
    warnings: [...new Set([success, reward].flatMap((difference) => difference?.warning ?? []))],
  }
}

function sides(outcomes: Iterable<Outcome>): Map<string, TaskSide> {
  const tasks = new Map<string, TaskSide>()
  for (const outcome of outcomes) {
    let side = tasks.get(outcome.taskId)
    if (!side) tasks.set(outcome.taskId, (side = new TaskSide()))
    side.add(outcome)
  }
  return tasks
}

/** A difference of two figures within 0 to 1. */
const DIFFERENCE: Range = [-1, 1]

function successDifference(pairs: readonly Pair[], options: CompareOptions): Difference | null {
  return difference(pairs, (side) => side.solved, DIFFERENCE, options)
}

function rewardDifference(pairs: readonly Pair[], options: CompareOptions, given?: Range): Difference | null {
  const rewarded = pairs.filter(({ a, b }) => a.rewards.length > 0 && b.rewards.length > 0)
  let [min, max] = [Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY]
  for (const { a, b } of rewarded)
    for (const reward of [...a.rewards, ...b.rewards]) {
      min = Math.min(min, reward)
      max = Math.max(max, reward)
    }
  const [warning, range] = rangeOf(min, max, given)
  const gains: Range | undefined = range && [range[0] - range[1], range[1] - range[0]]
  return difference(rewarded, (side) => side.rewards, gains, options, warning)
}

function difference(
  pairs: readonly Pair[],
  pick: (side: TaskSide) => readonly number[],
  range: Range | undefined,
  options: CompareOptions,
  warning?: string,
): Difference | null {
  const [a, b] = [pairs.map((pair) => meanOf(pick(pair.a))), pairs.map((pair) => meanOf(pick(pair.b)))]
  const rollouts = pairs.reduce((sum, pair) => sum + pick(pair.a).length + pick(pair.b).length, 0)
  const gains = b.map((value, at) => value - a[at]!)
  const found = estimate(gains, rollouts, range, options, warning ?? tooFew(gains.length, options))
  return found && { a: meanOf(a), b: meanOf(b), ...found }
}

/** With so few tasks, even a run that solves all of them against one that solves none gives an interval that holds 0. */
function tooFew(tasks: number, options: CompareOptions): string | undefined {
  const needed = Math.floor(Math.log((1 - checkConfidence(options.confidence)) / 2) / Math.log(0.5)) + 1
  return tasks > 1 && tasks < needed ? `no difference can be told from fewer than ${needed} tasks` : undefined
}

const HALF = 0.5

function flipsIn(pairs: readonly Pair[]): Comparison['flips'] {
  const flipped = (from: (rate: number) => boolean, to: (rate: number) => boolean) =>
    pairs.filter(({ a, b }) => from(meanOf(a.solved)) && to(meanOf(b.solved))).map(({ id }) => id)
  const [solved, unsolved] = [(rate: number) => rate > HALF, (rate: number) => rate < HALF]
  return { toSolved: flipped(unsolved, solved), toUnsolved: flipped(solved, unsolved) }
}

function usedBy(pairs: readonly Pair[], figure: UsageFigure): UsedBy | null {
  const both = pairs.filter(({ a, b }) => a.used[figure].length > 0 && b.used[figure].length > 0)
  if (both.length === 0) return null
  const [a, b] = [
    meanOf(both.map((pair) => meanOf(pair.a.used[figure]))),
    meanOf(both.map((pair) => meanOf(pair.b.used[figure]))),
  ]
  return { a, b, difference: b - a }
}
