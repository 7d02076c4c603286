import { ManyworldsError } from '../errors.ts'
import { counted } from '../text/quantities.ts'
import { type Estimate, meanReward, passRate, type RewardOptions, successAtLeast, successRate } from './intervals.ts'
import { isGraded, type Judgement, judgementOf } from './judgement.ts'
import type { Outcome } from './outcome.ts'

export interface SummaryOptions extends RewardOptions {
  /** The values of k for pass@k. Default: 2, 4, 8, … up to the number of rollouts. */
  readonly passAt?: readonly number[]
  /** A key of `metadata`: adds figures for each of its values. A task whose value is a list belongs to several groups. */
  readonly groupBy?: string
}

/** The evaluation of a run. */
export interface EvaluationSummary {
  readonly tasks: number
  readonly rollouts: number
  /** The number of rollouts that are solved, unsolved, and without a result. */
  readonly solved: number
  readonly unsolved: number
  readonly withoutResult: number
  /** The main figure. Failures of the agent count as unsolved. Null if no rollout has a result. */
  readonly success: Estimate | null
  /** At least this share of all such tasks is solved, with the confidence of `success`: a one-sided bound, for `atLeast`. */
  readonly successAtLeast: number | null
  /** The share of solved rollouts among the graded ones. */
  readonly gradedSuccess: Estimate | null
  /** The mean reward of graded rollouts. The others have no reward. */
  readonly reward: Estimate | null
  readonly passAt: Readonly<Record<number, Estimate>>
  /** The number of failed rollouts by error code. Failures of the agent are unsolved; the others have no result. */
  readonly failures: { readonly agent: Tally; readonly infrastructure: Tally }
  /** Tasks with an unsolved rollout, the worst first. */
  readonly unsolvedTasks: readonly UnsolvedTask[]
  /** Tasks with a rollout that has no result. */
  readonly ungradedTasks: readonly UngradedTask[]
  readonly warnings: readonly string[]
  /** By value of the `groupBy` key. */
  readonly groups?: Readonly<Record<string, EvaluationSummary>>
}

export type Tally = Readonly<Record<string, number>>

export interface UnsolvedTask {
  readonly id: string
  readonly solved: number
  readonly rollouts: number
  /** Error codes of failed rollouts. */
  readonly reasons: readonly string[]
}

export interface UngradedTask {
  readonly id: string
  /** The number of its rollouts without a result. */
  readonly rollouts: number
  /** Error codes. */
  readonly reasons: readonly string[]
}

interface TaskResults {
  readonly id: string
  readonly results: Judgement[]
}

/** Above this share of rollouts without a result, the figures may be biased. */
const MANY_WITHOUT_RESULT = 0.05
const MAX_PASS_AT = 1024
const MAX_GROUPS = 1000
const NO_GROUP = '(none)'
const MAX_NAME_LENGTH = 200

/**
 * Summarizes the rollouts of a run, with tasks as the population.
 *
 * @example
 * const { success } = summarizeOutcomes(responses.map(outcomeOf))
 * console.log(success?.value, success?.low, success?.high)
 */
export function summarizeOutcomes(outcomes: Iterable<Outcome>, options: SummaryOptions = {}): EvaluationSummary {
  if (options.groupBy === undefined) return summarize(outcomes, options)
  const all = [...outcomes]
  const { groupBy, ...rest } = options
  const groups = Object.fromEntries(
    [...partition(all, groupBy)].map(([value, members]) => [value, summarize(members, rest)]),
  )
  return { ...summarize(all, rest), groups }
}

/** The results of a run by task. Outcomes are added one by one and not kept, because a run may have many. */
export class OutcomeResults {
  readonly #tasks = new Map<string, TaskResults>()

  add(outcome: Outcome): void {
    let task = this.#tasks.get(outcome.taskId)
    if (!task) this.#tasks.set(outcome.taskId, (task = { id: outcome.taskId, results: [] }))
    task.results.push(judgementOf(outcome))
  }

  summary(options: Omit<SummaryOptions, 'groupBy'> = {}): EvaluationSummary {
    return summaryOf([...this.#tasks.values()], options)
  }
}

function summarize(outcomes: Iterable<Outcome>, options: SummaryOptions): EvaluationSummary {
  const results = new OutcomeResults()
  for (const outcome of outcomes) results.add(outcome)
  return results.summary(options)
}

function summaryOf(tasks: readonly TaskResults[], options: SummaryOptions): EvaluationSummary {
  const every = tasks.flatMap(({ results }) => results)
  const solved = of(tasks, (result) => result.solved)
  const success = successRate(solved, options)
  const gradedSuccess = successRate(
    of(tasks, (result) => (isGraded(result) ? result.solved : null)),
    options,
  )
  const reward = meanReward(
    of(tasks, (result) => result.reward),
    options,
  )
  const passAt: Record<number, Estimate> = {}
  for (const k of options.passAt ?? powersOfTwo(tasks)) {
    const estimate = passRate(solved, k, options)
    if (estimate) passAt[k] = estimate
  }
  const counts = {
    tasks: tasks.length,
    rollouts: every.length,
    solved: every.filter((result) => result.solved === true).length,
    unsolved: every.filter((result) => result.solved === false).length,
    withoutResult: every.filter((result) => result.solved === null).length,
  }
  const failures = {
    agent: tally(every.filter((result) => result.solved === false)),
    infrastructure: tally(every.filter((result) => result.solved === null)),
  }
  const own = [success, reward, ...Object.values(passAt)].flatMap((estimate) => estimate?.warning ?? [])
  return {
    ...counts,
    ...{ success, successAtLeast: successAtLeast(solved, options), gradedSuccess, reward, passAt, failures },
    unsolvedTasks: unsolvedTasks(tasks),
    ungradedTasks: ungradedTasks(tasks),
    warnings: [...new Set([...own, ...warningsOn(every)])],
  }
}

const of = <Value>(tasks: readonly TaskResults[], pick: (result: Judgement) => Value) =>
  tasks.map(({ results }) => results.map(pick))

function powersOfTwo(tasks: readonly TaskResults[]): number[] {
  let most = 0
  for (const { results } of tasks) most = Math.max(most, results.length)
  const ks: number[] = []
  for (let k = 2; k <= Math.min(most, MAX_PASS_AT); k *= 2) ks.push(k)
  return ks
}

function tally(results: readonly Judgement[]): Tally {
  const counts = new Map<string, number>()
  for (const { reason } of results) if (reason !== undefined) counts.set(reason, (counts.get(reason) ?? 0) + 1)
  return Object.fromEntries(counts)
}

function unsolvedTasks(tasks: readonly TaskResults[]): UnsolvedTask[] {
  const unsolved: UnsolvedTask[] = []
  for (const { id, results } of tasks) {
    const withResult = results.filter((result) => result.solved !== null)
    const solved = withResult.filter((result) => result.solved).length
    if (solved === withResult.length) continue
    const reasons = [...new Set(withResult.flatMap(({ reason }) => reason ?? []))]
    unsolved.push({ id, solved, rollouts: withResult.length, reasons })
  }
  return unsolved.sort((a, b) => a.solved / a.rollouts - b.solved / b.rollouts)
}

function ungradedTasks(tasks: readonly TaskResults[]): UngradedTask[] {
  return tasks.flatMap(({ id, results }) => {
    const without = results.filter(({ solved }) => solved === null)
    const reasons = [...new Set(without.flatMap(({ reason }) => reason ?? []))]
    return without.length === 0 ? [] : [{ id, rollouts: without.length, reasons }]
  })
}

function warningsOn(results: readonly Judgement[]): string[] {
  const warnings: string[] = []
  const without = results.filter(({ solved }) => solved === null).length
  if (without > MANY_WITHOUT_RESULT * results.length)
    warnings.push(
      `${without} of ${counted(results.length, 'rollout')} ${without === 1 ? 'has' : 'have'} no result; unless that was random, the figures are biased`,
    )
  const graded = results.filter(isGraded).length
  const onTrust = results.filter(({ basis }) => basis === 'trust').length
  if (graded > 0 && onTrust > 0)
    warnings.push(
      `${counted(onTrust, 'rollout')} without a grade ${onTrust === 1 ? 'counts' : 'count'} as solved, because ${onTrust === 1 ? 'it' : 'they'} did not fail`,
    )
  const rewarded = results.filter(({ reward }) => reward !== null).length
  const failed = results.filter(({ basis }) => basis === 'failure').length
  if (rewarded > 0 && failed > 0)
    warnings.push(`the mean reward excludes ${counted(failed, 'rollout')} that failed before grading`)
  return warnings
}

function partition(outcomes: readonly Outcome[], key: string): Map<string, Outcome[]> {
  const groups = new Map<string, Outcome[]>()
  for (const outcome of outcomes) {
    const value = outcome.metadata?.[key]
    const names = Array.isArray(value) ? [...new Set(value.map(nameOf))] : [nameOf(value)]
    for (const name of names.length > 0 ? names : [NO_GROUP]) {
      const group = groups.get(name)
      if (group) group.push(outcome)
      else groups.set(name, [outcome])
    }
    if (groups.size > MAX_GROUPS)
      throw new ManyworldsError(
        'CONFIG_INVALID',
        `\`groupBy\`: '${key}' has more than ${MAX_GROUPS} values; give a key of \`metadata\` that tasks share`,
      )
  }
  return new Map([...groups].sort(([a], [b]) => a.localeCompare(b, 'en', { numeric: true })))
}

function nameOf(value: unknown): string {
  if (value === undefined || value === null) return NO_GROUP
  return typeof value === 'object' ? '(object)' : String(value).slice(0, MAX_NAME_LENGTH)
}
