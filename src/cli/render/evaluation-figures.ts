import type { Estimate } from '../../grade/intervals.ts'
import { describeRate, describeReward, rateText } from '../../grade/words.ts'
import { isFields, isNumber } from '../../store/stored-shapes.ts'

/**
 * A share or a mean with its 95 % interval. The store does not interpret the summary of an evaluation, so its fields are
 * checked here.
 */
interface Figure {
  readonly value: number
  readonly low: number
  readonly high: number
}

const CONFIDENCE = 0.95

function figureIn(summary: unknown, name: 'success' | 'reward'): Figure | undefined {
  const figure: unknown = isFields(summary) ? summary[name] : undefined
  if (!isFields(figure) || !['value', 'low', 'high'].every((key) => isNumber(figure[key]))) return undefined
  return figure as unknown as Figure
}

const estimate = (figure: Figure): Estimate => ({ ...figure, confidence: CONFIDENCE, tasks: 0, rollouts: 0 })

/** `82.0 % (95 % interval 70.1 to 90.2)`; the reward if no rollout was judged. */
export function describeEvaluation(summary: unknown): string {
  const [success, reward] = [figureIn(summary, 'success'), figureIn(summary, 'reward')]
  if (success) return describeRate(estimate(success))
  return reward ? `reward ${describeReward(estimate(reward))}` : 'no result'
}

/** `82.0 %`, or `0.742`. */
export function briefEvaluation(summary: unknown): string {
  const [success, reward] = [figureIn(summary, 'success'), figureIn(summary, 'reward')]
  return success ? rateText(success.value) : (reward?.value.toFixed(3) ?? '')
}

/** The share of solved rollouts, for a chart; null if unknown. */
export const successIn = (summary: unknown): number | null => figureIn(summary, 'success')?.value ?? null
export const rewardIn = (summary: unknown): number | null => figureIn(summary, 'reward')?.value ?? null
