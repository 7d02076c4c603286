import { outwards, rateText } from '../../grade/words.ts'
import { drawsBlocks, sparkline } from '../../text/chart.ts'
import type { EvaluationFigures, Figure } from '../../train/pipeline/training-record.ts'

/** The measure of a training: the share of solved episodes or, if none is judged, the reward. */
export type Measure = 'success' | 'reward'

/** `84.2 %`, `0.742` */
export const valueText = (value: number, measure: Measure): string =>
  measure === 'success' ? rateText(value) : value.toFixed(3)

/** `84.2 % [79.0, 88.1]`: with its 95 % interval, rounded outwards. */
export function figureText(figure: Figure, measure: Measure): string {
  const [unit, digits] = measure === 'success' ? [100, 1] : [1, 3]
  // In JSON, an infinite end of an interval is null.
  const low = outwards(unit * (figure.low ?? Number.NEGATIVE_INFINITY), -1, digits)
  const high = outwards(unit * (figure.high ?? Number.POSITIVE_INFINITY), 1, digits)
  return `${valueText(figure.value, measure)} [${low}, ${high}]`
}

/** The success rate or, if it is unknown, the reward. Undefined if nothing was judged. */
export function evaluationText({ success, reward }: EvaluationFigures): string | undefined {
  if (success) return figureText(success, 'success')
  return reward ? `reward ${figureText(reward, 'reward')}` : undefined
}

/**
 * The axis of a share is 0 to 1, so that small changes do not look large; that of a reward is from its minimum to its
 * maximum.
 */
export const curveText = (values: readonly number[], measure: Measure, width: number): string =>
  sparkline(values, width, drawsBlocks(), measure === 'success' ? [0, 1] : undefined)
