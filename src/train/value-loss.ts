import { checkNumbers } from './check-numbers.ts'
import { moments } from './moments.ts'

export interface ValueLoss {
  readonly loss: number
  /** The derivative of the loss by the value. */
  readonly byValue: number
  readonly isClipped: boolean
}

/**
 * Half the squared error. With `clip`, the value gains nothing by moving further than `clip` from `old`, what it was when the episode was
 * collected: the larger of both errors counts.
 */
export function valueLoss(
  value: number,
  target: number,
  clipping?: { readonly old: number; readonly clip: number },
): ValueLoss {
  const error = value - target
  if (clipping) {
    const { old, clip } = clipping
    const clippedError = Math.min(Math.max(value, old - clip), old + clip) - target
    if (Math.abs(clippedError) > Math.abs(error))
      return { loss: (clippedError * clippedError) / 2, byValue: 0, isClipped: true }
  }
  return { loss: (error * error) / 2, byValue: error, isClipped: false }
}

/**
 * How much of the variance of returns the values foretell: 1 all of it, 0 none, below 0 they are worse than a constant. Undefined if the
 * returns do not vary.
 */
export function explainedVariance(values: ArrayLike<number>, returns: ArrayLike<number>): number | undefined {
  checkNumbers('returns', returns)
  checkNumbers('values', values, returns.length)
  const { squares } = moments(returns)
  if (!(squares > 0)) return undefined
  return 1 - moments(Float64Array.from(returns, (target, i) => target - values[i]!)).squares / squares
}
