import { compareRuns } from '../../grade/compare.ts'
import type { Estimate } from '../../grade/intervals.ts'
import { type Outcome, outcomeOf } from '../../grade/outcome.ts'
import { summarizeOutcomes } from '../../grade/summarize.ts'
import type { TaskResponse } from '../../task.ts'
import type { EvalRow, EvaluationFigures, Figure } from './training-record.ts'

/** The outcome of an episode. Without a grader, the environment's reward and success count. */
export function outcomeOfEpisode(response: TaskResponse): Outcome {
  const outcome = outcomeOf(response)
  const { grade, episode } = response
  if (grade || !episode) return outcome
  return { ...outcome, grade: { reward: episode.reward, success: episode.success } }
}

/** The results of a version. `success` is null if no episode was judged a success or failure. */
export function evaluationFigures(outcomes: readonly Outcome[]): EvaluationFigures {
  const { success, reward, withoutResult } = summarizeOutcomes(outcomes)
  return { success: isJudged(outcomes) ? figure(success) : null, reward: figure(reward), withoutResult }
}

/** B minus A, paired by task: both ran the same tasks with the same seeds. */
export function compareFigures(a: readonly Outcome[], b: readonly Outcome[]): Figure | null {
  const { success, reward } = compareRuns(a, b)
  return figure(isJudged(a) || isJudged(b) ? success : reward)
}

/** Compares the success rate or, if unknown, the reward. */
export function isBetter(one: EvaluationFigures, other: EvaluationFigures): boolean {
  const [a, b] = one.success && other.success ? [one.success, other.success] : [one.reward, other.reward]
  return a !== null && (b === null || a.value > b.value)
}

/**
 * The best version by validation; among equals the last, which has trained longest. Undefined if none was evaluated.
 */
export const bestOf = (rows: readonly EvalRow[]): EvalRow | undefined =>
  rows
    .filter(({ split }) => split === 'validation')
    .sort((a, b) => a.version - b.version)
    .reduce<EvalRow | undefined>((best, row) => (best && isBetter(best.summary, row.summary) ? best : row), undefined)

const isJudged = (outcomes: readonly Outcome[]) => outcomes.some(({ grade }) => typeof grade?.success === 'boolean')

const figure = (estimate: Estimate | null): Figure | null =>
  estimate && { value: estimate.value, low: estimate.low, high: estimate.high }
