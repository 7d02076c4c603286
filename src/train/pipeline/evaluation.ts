import { compareRuns } from '../../grade/compare.ts'
import type { Estimate } from '../../grade/intervals.ts'
import { judgementOf } from '../../grade/judgement.ts'
import type { Outcome } from '../../grade/outcome.ts'
import { summarizeOutcomes } from '../../grade/summarize.ts'
import { isVerdict } from '../failed-rollouts.ts'
import { meanScore } from '../prompts/compare.ts'
import type { EvalRow, EvaluationFigures, Figure } from './training-record.ts'

/**
 * The results of a version. `success` is null if no episode was judged a success or failure. `byScore`: versions are
 * selected by their score.
 */
export function evaluationFigures(outcomes: readonly Outcome[], byScore = false): EvaluationFigures {
  const { success, reward, withoutResult } = summarizeOutcomes(outcomes)
  const figures = { success: isJudged(outcomes) ? figure(success) : null, reward: figure(reward), withoutResult }
  return byScore ? { ...figures, score: meanScore(outcomes) } : figures
}

/** B minus A, paired by task: both ran the same tasks with the same seeds. */
export function compareFigures(a: readonly Outcome[], b: readonly Outcome[]): Figure | null {
  const { success, reward } = compareRuns(a, b)
  return figure(isJudged(a) || isJudged(b) ? success : reward)
}

/** Compares the score of learners that search by it, else the success rate or, if unknown, the reward. */
export function isBetter(one: EvaluationFigures, other: EvaluationFigures): boolean {
  if (one.score !== undefined && other.score !== undefined)
    return one.score !== null && (other.score === null || one.score > other.score)
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

const isJudged = (outcomes: readonly Outcome[]) => outcomes.some((outcome) => isVerdict(judgementOf(outcome)))

const figure = (estimate: Estimate | null): Figure | null =>
  estimate && { value: estimate.value, low: estimate.low, high: estimate.high }
