import { checkNumbers } from './check-numbers.ts'
import { moments } from './moments.ts'

export interface ValueLoss {
  readonly loss: number
  /** The derivative of the loss with respect to the value. */
  readonly byValue: number
  readonly isClipped: boolean
}

/**
 * Half the squared error. With `clip`, moving the value further than `clip` from `old`, its value when the episode was
 * collected, does not reduce the loss: the larger of both errors counts.
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
 * The fraction of the returns' variance that the values explain: 1 is all, 0 none, below 0 worse than a constant.
 * Undefined if the returns do not vary.
 */
export function explainedVariance(values: ArrayLike<number>, returns: ArrayLike<number>): number | undefined {
  checkNumbers('returns', returns)
  checkNumbers('values', values, returns.length)
  const { squares } = moments(returns)
  if (!(squares > 0)) return undefined
  return 1 - moments(Float64Array.from(returns, (target, i) => target - values[i]!)).squares / squares
}
