import { USAGE_KEYS, type Usage } from '../trajectory/usage.ts'
import { checkRange, type Estimate, estimate, type RewardOptions, rangeOf } from './intervals.ts'
import { judgementOf } from './judgement.ts'
import { checkConfidence, meanOf, type Range } from './mean-interval.ts'
import type { Outcome } from './outcome.ts'
import { TaskMeans, TaskNumbers } from './task-means.ts'
import { apartText, comparisonVerdict } from './verdict.ts'

export interface CompareOptions extends RewardOptions {
  /** Names of the runs in the verdict. Default: A and B. */
  readonly names?: readonly [a: string, b: string]
  /** Also compare runs whose tasks or graders differ. Default: false, they get no verdict. */
  readonly anyway?: boolean
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
  /** The usage per rollout of these tasks, as measured, so without an interval. Null: not reported. */
  readonly usage: Readonly<Record<UsageFigure, UsedBy | null>>
  /** Common tasks that cannot be compared. If there are any, there is no verdict and no difference, unless `anyway` is set. */
  readonly differs: ComparedApart
  readonly verdict: string
  readonly warnings: readonly string[]
}

/** What makes two runs incomparable. */
export interface ComparedApart {
  /** Ids of tasks whose input or ground truth is another. */
  readonly tasks: readonly string[]
  /** Graders that graded the same tasks differently: name and hash, and the number of tasks. */
  readonly graders: readonly { readonly a: string; readonly b: string; readonly tasks: number }[]
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

/**
 * What a comparison needs of a run. Outcomes are added one by one and not kept: a run may have many. Each task has a row, the same
 * in all figures.
 */
export class ComparedOutcomes {
  readonly rows = new Map<string, number>()
  readonly solved = new TaskMeans()
  readonly rewards = new TaskMeans()
  /** By row: what the task asks, and what graded it; undefined: unknown. */
  readonly content: (string | undefined)[] = []
  readonly graders: (string | undefined)[] = []
  readonly lowestReward = new TaskNumbers(Number.POSITIVE_INFINITY)
  readonly highestReward = new TaskNumbers(Number.NEGATIVE_INFINITY)
  readonly used = Object.fromEntries(USAGE_FIGURES.map((figure) => [figure, new TaskMeans()])) as Record<
    UsageFigure,
    TaskMeans
  >

  /** Returns the row of the task. */
  add(outcome: Outcome): number {
    const row = this.#rowOf(outcome.taskId)
    this.content[row] ??= outcome.content
    this.graders[row] ??= graderIn(outcome)
    const { solved, reward } = judgementOf(outcome)
    if (solved === null) return row
    this.solved.add(row, Number(solved))
    if (reward !== null) this.#addReward(row, reward)
    for (const figure of USAGE_FIGURES) {
      const value = figure === 'runMs' ? outcome.runMs : outcome.usage?.[figure]
      if (value !== undefined && Number.isFinite(value)) this.used[figure].add(row, value)
    }
    return row
  }

  #rowOf(taskId: string): number {
    let row = this.rows.get(taskId)
    if (row === undefined) this.rows.set(taskId, (row = this.rows.size))
    return row
  }

  #addReward(row: number, reward: number): void {
    this.rewards.add(row, reward)
    this.lowestReward.set(row, Math.min(this.lowestReward.get(row), reward))
    this.highestReward.set(row, Math.max(this.highestReward.get(row), reward))
  }

  static of(outcomes: Iterable<Outcome>): ComparedOutcomes {
    const all = new ComparedOutcomes()
    for (const outcome of outcomes) all.add(outcome)
    return all
  }
}

/** `numeric 3f2a1b9c`; undefined: unknown, because the rollout failed or waits for its grade. */
function graderIn({ status, grade }: Outcome): string | undefined {
  if (!grade) return status === 'success' ? 'no grader' : undefined
  if (!grade.grader || grade.error) return undefined
  const { name, sha256 } = grade.grader
  return sha256 === undefined ? 'the environment' : `${name} ${sha256.slice(0, SHA_SHOWN)}`
}

const SHA_SHOWN = 8

/** The rows of a task in both runs. */
interface Pair {
  readonly id: string
  readonly a: number
  readonly b: number
}

/** Two runs, and their common tasks with a result in both. */
interface PairedRuns {
  readonly a: ComparedOutcomes
  readonly b: ComparedOutcomes
  readonly pairs: readonly Pair[]
}

/** Compares two runs over their common tasks. A positive difference means that B has more. */
export function compareRuns(a: Iterable<Outcome>, b: Iterable<Outcome>, options: CompareOptions = {}): Comparison {
  return compareOutcomes(ComparedOutcomes.of(a), ComparedOutcomes.of(b), options)
}

export function compareOutcomes(a: ComparedOutcomes, b: ComparedOutcomes, options: CompareOptions): Comparison {
  checkConfidence(options.confidence)
  const range = checkRange(options.rewardRange)
  const differs = differencesOf(a, b)
  const isApart = differs.tasks.length > 0 || differs.graders.length > 0
  const why = isApart ? apartText(differs, options.names) : undefined
  const pairs: Pair[] = []
  const withoutResult: string[] = []
  for (const [id, rowA] of a.rows) {
    const rowB = b.rows.get(id)
    if (rowB === undefined) continue
    if (a.solved.count(rowA) > 0 && b.solved.count(rowB) > 0) pairs.push({ id, a: rowA, b: rowB })
    else withoutResult.push(id)
  }
  const refused = why !== undefined && !options.anyway
  const runs: PairedRuns = { a, b, pairs: refused ? [] : pairs }
  const success = successDifference(runs, options)
  const reward = rewardDifference(runs, options, range)
  const usage = Object.fromEntries(USAGE_FIGURES.map((figure) => [figure, usedBy(runs, figure)]))
  return {
    tasks: pairs.length,
    onlyInA: [...a.rows.keys()].filter((id) => !b.rows.has(id)),
    onlyInB: [...b.rows.keys()].filter((id) => !a.rows.has(id)),
    withoutResult,
    success,
    reward,
    flips: flipsIn(runs),
    usage: usage as Comparison['usage'],
    differs,
    verdict: refused ? `no verdict: ${why}` : comparisonVerdict(success, options.names),
    warnings: [
      ...(why !== undefined && !refused ? [`compared although ${why}`] : []),
      ...new Set([success, reward].flatMap((difference) => difference?.warning ?? [])),
    ],
  }
}

/** The common tasks that ask something else, or were graded by something else. */
function differencesOf(a: ComparedOutcomes, b: ComparedOutcomes): ComparedApart {
  const tasks: string[] = []
  const graders = new Map<string, { readonly a: string; readonly b: string; tasks: number }>()
  for (const [id, rowA] of a.rows) {
    const rowB = b.rows.get(id)
    if (rowB === undefined) continue
    const [askedA, askedB] = [a.content[rowA], b.content[rowB]]
    if (askedA !== undefined && askedB !== undefined && askedA !== askedB) tasks.push(id)
    const [by, other] = [a.graders[rowA], b.graders[rowB]]
    if (by === undefined || other === undefined || by === other) continue
    const key = `${by}\0${other}`
    const known = graders.get(key)
    if (known) known.tasks++
    else graders.set(key, { a: by, b: other, tasks: 1 })
  }
  return { tasks, graders: [...graders.values()] }
}

/** The range of a difference of two figures from 0 to 1. */
const DIFFERENCE: Range = [-1, 1]

function successDifference(runs: PairedRuns, options: CompareOptions): Difference | null {
  return difference(runs, (run) => run.solved, DIFFERENCE, options)
}

function rewardDifference({ a, b, pairs }: PairedRuns, options: CompareOptions, given?: Range): Difference | null {
  const rewarded = pairs.filter((pair) => a.rewards.count(pair.a) > 0 && b.rewards.count(pair.b) > 0)
  let [min, max] = [Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY]
  for (const pair of rewarded) {
    min = Math.min(min, a.lowestReward.get(pair.a), b.lowestReward.get(pair.b))
    max = Math.max(max, a.highestReward.get(pair.a), b.highestReward.get(pair.b))
  }
  const [warning, range] = rangeOf(min, max, given)
  const gains: Range | undefined = range && [range[0] - range[1], range[1] - range[0]]
  return difference({ a, b, pairs: rewarded }, (run) => run.rewards, gains, options, warning)
}

function difference(
  { a, b, pairs }: PairedRuns,
  pick: (run: ComparedOutcomes) => TaskMeans,
  range: Range | undefined,
  options: CompareOptions,
  warning?: string,
): Difference | null {
  const [ofA, ofB] = [pick(a), pick(b)]
  const [valuesA, valuesB] = [pairs.map((pair) => ofA.mean(pair.a)), pairs.map((pair) => ofB.mean(pair.b))]
  const rollouts = pairs.reduce((sum, pair) => sum + ofA.count(pair.a) + ofB.count(pair.b), 0)
  const gains = valuesB.map((value, at) => value - valuesA[at]!)
  const found = estimate(gains, rollouts, range, options, warning ?? tooFew(gains.length, options))
  return found && { a: meanOf(valuesA), b: meanOf(valuesB), ...found }
}

/** With so few tasks, the interval contains 0 even if one run solves all of them and the other none. */
function tooFew(tasks: number, options: CompareOptions): string | undefined {
  const needed = Math.floor(Math.log((1 - checkConfidence(options.confidence)) / 2) / Math.log(0.5)) + 1
  return tasks > 1 && tasks < needed ? `at least ${needed} tasks are needed to detect a difference` : undefined
}

const HALF = 0.5

function flipsIn({ a, b, pairs }: PairedRuns): Comparison['flips'] {
  const flipped = (from: (rate: number) => boolean, to: (rate: number) => boolean) =>
    pairs.filter((pair) => from(a.solved.mean(pair.a)) && to(b.solved.mean(pair.b))).map(({ id }) => id)
  const [solved, unsolved] = [(rate: number) => rate > HALF, (rate: number) => rate < HALF]
  return { toSolved: flipped(unsolved, solved), toUnsolved: flipped(solved, unsolved) }
}

function usedBy({ a, b, pairs }: PairedRuns, figure: UsageFigure): UsedBy | null {
  const [ofA, ofB] = [a.used[figure], b.used[figure]]
  const both = pairs.filter((pair) => ofA.count(pair.a) > 0 && ofB.count(pair.b) > 0)
  if (both.length === 0) return null
  const [usedA, usedB] = [meanOf(both.map((pair) => ofA.mean(pair.a))), meanOf(both.map((pair) => ofB.mean(pair.b)))]
  return { a: usedA, b: usedB, difference: usedB - usedA }
}
