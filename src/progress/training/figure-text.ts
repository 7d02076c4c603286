import { outwards, rateText } from '../../grade/words.ts'
import { drawsBlocks, sparkline } from '../../text/chart.ts'
import type { EvaluationFigures, Figure } from '../../train/pipeline/training-record.ts'

/** What a training is measured by: the share of solved episodes or, where nobody says which are solved, the reward. */
export type Measure = 'success' | 'reward'

/** `84.2 %`, `0.742` */
export const valueText = (value: number, measure: Measure): string =>
  measure === 'success' ? rateText(value) : value.toFixed(3)

/** `84.2 % [79.0, 88.1]`: with its 95 % interval, rounded outwards. */
export function figureText(figure: Figure, measure: Measure): string {
  const [unit, digits] = measure === 'success' ? [100, 1] : [1, 3]
  // JSON has null for an end that nothing bounds.
  const low = outwards(unit * (figure.low ?? Number.NEGATIVE_INFINITY), -1, digits)
  const high = outwards(unit * (figure.high ?? Number.POSITIVE_INFINITY), 1, digits)
  return `${valueText(figure.value, measure)} [${low}, ${high}]`
}

/** The figure that counts. Undefined: nothing was judged. */
export function evaluationText({ success, reward }: EvaluationFigures): string | undefined {
  if (success) return figureText(success, 'success')
  return reward ? `reward ${figureText(reward, 'reward')}` : undefined
}

/** Shares are drawn from 0 to 1, so that little does not look like much; rewards from their least to their greatest. */
export const curveText = (values: readonly number[], measure: Measure, width: number): string =>
  sparkline(values, width, drawsBlocks(), measure === 'success' ? [0, 1] : undefined)
