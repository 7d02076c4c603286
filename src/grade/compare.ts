import { USAGE_KEYS, type Usage } from '../trajectory/usage.ts'
import { checkRange, type Estimate, estimate, type RewardOptions, rangeOf } from './intervals.ts'
import { checkConfidence, meanOf, type Range } from './mean-interval.ts'
import { type Outcome, resultOf } from './outcome.ts'
import { comparisonVerdict } from './verdict.ts'

export interface CompareOptions extends RewardOptions {
  /** Names of the runs in the verdict. Default: A and B. */
  readonly names?: readonly [a: string, b: string]
}

/** The comparison of runs A and B over their common tasks. */
export interface Comparison {
  /** The number of tasks with a result in both runs. */
  readonly tasks: number
  /** Ids of tasks that only one of the runs has. They are left out. */
  readonly onlyInA: readonly string[]
  readonly onlyInB: readonly string[]
  /** Ids of common tasks without a result in one of the runs. They are left out too. */
  readonly withoutResult: readonly string[]
  readonly success: Difference | null
  /** Over tasks with a reward in both runs. */
  readonly reward: Difference | null
  /** Tasks that most rollouts of A left unsolved and most of B solved, and vice versa. */
  readonly flips: { readonly toSolved: readonly string[]; readonly toUnsolved: readonly string[] }
  /** The usage per rollout of these tasks. Without an interval, because it was measured. Null: not reported. */
  readonly usage: Readonly<Record<UsageFigure, UsedBy | null>>
  readonly verdict: string
  readonly warnings: readonly string[]
}

/** B minus A, paired by task. `value`, `low` and `high` describe the difference. */
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

/** A mean of values that are not kept. */
class Mean {
  count = 0
  #sum = 0

  add(value: number): void {
    this.count++
    this.#sum += value
  }

  get value(): number {
    return this.#sum / this.count
  }
}

/** The results of one task in one run. */
class TaskSide {
  readonly solved = new Mean()
  readonly rewards = new Mean()
  lowest = Number.POSITIVE_INFINITY
  highest = Number.NEGATIVE_INFINITY
  readonly used: Partial<Record<UsageFigure, Mean>> = {}

  add(outcome: Outcome): void {
    const { solved, reward } = resultOf(outcome)
    if (solved === null) return
    this.solved.add(Number(solved))
    if (reward !== null) this.#addReward(reward)
    for (const figure of USAGE_FIGURES) {
      const value = figure === 'runMs' ? outcome.runMs : outcome.usage?.[figure]
      if (value !== undefined && Number.isFinite(value)) (this.used[figure] ??= new Mean()).add(value)
    }
  }

  #addReward(reward: number): void {
    this.rewards.add(reward)
    this.lowest = Math.min(this.lowest, reward)
    this.highest = Math.max(this.highest, reward)
  }
}

/** What a comparison needs of a run. Outcomes are added one by one and not kept, because a run may have many. */
export class ComparedOutcomes {
  readonly tasks = new Map<string, TaskSide>()

  add(outcome: Outcome): void {
    let side = this.tasks.get(outcome.taskId)
    if (!side) this.tasks.set(outcome.taskId, (side = new TaskSide()))
    side.add(outcome)
  }

  static of(outcomes: Iterable<Outcome>): ComparedOutcomes {
    const all = new ComparedOutcomes()
    for (const outcome of outcomes) all.add(outcome)
    return all
  }
}

interface Pair {
  readonly id: string
  readonly a: TaskSide
  readonly b: TaskSide
}

/** Compares two runs over their common tasks. A positive difference means that B has more. */
export function compareRuns(a: Iterable<Outcome>, b: Iterable<Outcome>, options: CompareOptions = {}): Comparison {
  return compareOutcomes(ComparedOutcomes.of(a), ComparedOutcomes.of(b), options)
}

export function compareOutcomes(a: ComparedOutcomes, b: ComparedOutcomes, options: CompareOptions): Comparison {
  checkConfidence(options.confidence)
  const range = checkRange(options.rewardRange)
  const [sidesA, sidesB] = [a.tasks, b.tasks]
  const pairs: Pair[] = []
  const withoutResult: string[] = []
  for (const [id, sideA] of sidesA) {
    const sideB = sidesB.get(id)
    if (!sideB) continue
    if (sideA.solved.count > 0 && sideB.solved.count > 0) pairs.push({ id, a: sideA, b: sideB })
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

/** The range of a difference of two figures from 0 to 1. */
const DIFFERENCE: Range = [-1, 1]

function successDifference(pairs: readonly Pair[], options: CompareOptions): Difference | null {
  return difference(pairs, (side) => side.solved, DIFFERENCE, options)
}

function rewardDifference(pairs: readonly Pair[], options: CompareOptions, given?: Range): Difference | null {
  const rewarded = pairs.filter(({ a, b }) => a.rewards.count > 0 && b.rewards.count > 0)
  let [min, max] = [Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY]
  for (const { a, b } of rewarded) {
    min = Math.min(min, a.lowest, b.lowest)
    max = Math.max(max, a.highest, b.highest)
  }
  const [warning, range] = rangeOf(min, max, given)
  const gains: Range | undefined = range && [range[0] - range[1], range[1] - range[0]]
  return difference(rewarded, (side) => side.rewards, gains, options, warning)
}

function difference(
  pairs: readonly Pair[],
  pick: (side: TaskSide) => Mean,
  range: Range | undefined,
  options: CompareOptions,
  warning?: string,
): Difference | null {
  const [a, b] = [pairs.map((pair) => pick(pair.a).value), pairs.map((pair) => pick(pair.b).value)]
  const rollouts = pairs.reduce((sum, pair) => sum + pick(pair.a).count + pick(pair.b).count, 0)
  const gains = b.map((value, at) => value - a[at]!)
  const found = estimate(gains, rollouts, range, options, warning ?? tooFew(gains.length, options))
  return found && { a: meanOf(a), b: meanOf(b), ...found }
}

/** With so few tasks, the interval contains 0 even if one run solves all of them and the other none. */
function tooFew(tasks: number, options: CompareOptions): string | undefined {
  const needed = Math.floor(Math.log((1 - checkConfidence(options.confidence)) / 2) / Math.log(0.5)) + 1
  return tasks > 1 && tasks < needed ? `at least ${needed} tasks are needed to detect a difference` : undefined
}

const HALF = 0.5

function flipsIn(pairs: readonly Pair[]): Comparison['flips'] {
  const flipped = (from: (rate: number) => boolean, to: (rate: number) => boolean) =>
    pairs.filter(({ a, b }) => from(a.solved.value) && to(b.solved.value)).map(({ id }) => id)
  const [solved, unsolved] = [(rate: number) => rate > HALF, (rate: number) => rate < HALF]
  return { toSolved: flipped(unsolved, solved), toUnsolved: flipped(solved, unsolved) }
}

function usedBy(pairs: readonly Pair[], figure: UsageFigure): UsedBy | null {
  const both = pairs.flatMap((pair) => {
    const [a, b] = [pair.a.used[figure], pair.b.used[figure]]
    return a && b ? [{ a: a.value, b: b.value }] : []
  })
  if (both.length === 0) return null
  const [a, b] = [meanOf(both.map((pair) => pair.a)), meanOf(both.map((pair) => pair.b))]
  return { a, b, difference: b - a }
}
