import { compareRuns } from '../../grade/compare.ts'
import type { Estimate } from '../../grade/intervals.ts'
import { type Outcome, outcomeOf } from '../../grade/outcome.ts'
import { summarizeOutcomes } from '../../grade/summarize.ts'
import type { TaskResponse } from '../../task.ts'
import type { EvalRow, EvaluationFigures, Figure } from './training-record.ts'

/** What came of an episode. Without a grader, its environment says how good it was. */
export function outcomeOfEpisode(response: TaskResponse): Outcome {
  const outcome = outcomeOf(response)
  const { grade, episode } = response
  if (grade || !episode) return outcome
  return { ...outcome, grade: { reward: episode.reward, success: episode.success } }
}

/** How good a version is. Where nobody says which episodes are solved, its reward tells. */
export function evaluationFigures(outcomes: readonly Outcome[]): EvaluationFigures {
  const { success, reward, withoutResult } = summarizeOutcomes(outcomes)
  return { success: isJudged(outcomes) ? figure(success) : null, reward: figure(reward), withoutResult }
}

/** B less A, task by task: both had the same tasks with the same seeds. */
export function compareFigures(a: readonly Outcome[], b: readonly Outcome[]): Figure | null {
  const { success, reward } = compareRuns(a, b)
  return figure(isJudged(a) || isJudged(b) ? success : reward)
}

/** By the share of solved tasks or, where nobody says that, by the reward. */
export function isBetter(one: EvaluationFigures, other: EvaluationFigures): boolean {
  const [a, b] = one.success && other.success ? [one.success, other.success] : [one.reward, other.reward]
  return a !== null && (b === null || a.value > b.value)
}

/** The best version by validation; of equals the last, which has learned most. Undefined: none was evaluated. */
export const bestOf = (rows: readonly EvalRow[]): EvalRow | undefined =>
  rows
    .filter(({ split }) => split === 'validation')
    .sort((a, b) => a.version - b.version)
    .reduce<EvalRow | undefined>((best, row) => (best && isBetter(best.summary, row.summary) ? best : row), undefined)

const isJudged = (outcomes: readonly Outcome[]) => outcomes.some(({ grade }) => typeof grade?.success === 'boolean')

const figure = (estimate: Estimate | null): Figure | null =>
  estimate && { value: estimate.value, low: estimate.low, high: estimate.high }
