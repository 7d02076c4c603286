import { ManyworldsError } from '../errors.ts'
import { entropy, exactKl } from './divergence.ts'
import { exp } from './exact-math.ts'
import type { Metrics } from './learner.ts'
import type { LossRule } from './loss-settings.ts'
import { addSample, lossMetrics, newTally } from './loss-tally.ts'
import { asSampled, sampleLoss } from './losses.ts'
import type { ActionRow, Row } from './row.ts'
import { valueLoss } from './value-loss.ts'

/**
 * Computes the loss of rows and its derivatives with respect to the policy's outputs; a core only backpropagates these
 * to its weights. Rows are added one by one, in order, so the metrics are bit-identical for any split into
 * micro-batches.
 */
export class ActionLoss {
  readonly #tally = newTally()
  #loss = 0
  #entropy = 0
  #kl = 0
  #value = 0
  #values = 0

  /**
   * The derivative of the row's loss with respect to each candidate's logit, multiplied by the row's weight.
   * `reference`: the log-probabilities of the reference policy, required if `rule.kl` is above 0.
   */
  byLogits(row: ActionRow, rule: LossRule, logProbs: Float64Array, reference?: Float64Array): Float64Array {
    const { index, behavior, proximal, advantage, weight } = row
    const sample = asSampled({ logProb: logProbs[index]!, behavior, proximal, advantage }, rule)
    const result = sampleLoss(sample, rule)
    addSample(this.#tally, sample, result, weight)
    const spread = entropy(logProbs)
    const drift = reference && rule.kl > 0 ? exactKl(logProbs, reference) : undefined
    this.#entropy += spread.value
    this.#kl += drift?.value ?? 0
    this.#loss += weight * (result.loss - rule.entropy * spread.value + rule.kl * (drift?.value ?? 0))
    const byLogit = new Float64Array(logProbs.length)
    for (let i = 0; i < byLogit.length; i++)
      byLogit[i] =
        weight *
        (result.byLogProb * ((i === index ? 1 : 0) - exp(logProbs[i]!)) -
          rule.entropy * spread.byLogit[i]! +
          (drift ? rule.kl * drift.byLogit[i]! : 0))
    return byLogit
  }

  /** The derivative of the row's loss with respect to the value, multiplied by the row's weight. */
  byValue({ return: target, weight }: ActionRow, rule: LossRule, value: number): number {
    if (target === undefined)
      throw new ManyworldsError(
        'ROW_INVALID',
        'training the value head requires a `return` in every row; add it, or set `value` of the loss to 0',
      )
    const { loss, byValue } = valueLoss(value, target)
    this.#value += loss
    this.#values++
    this.#loss += weight * rule.value * loss
    return weight * rule.value * byValue
  }

  /** Metrics over all rows so far. */
  metrics(rule: LossRule): Metrics {
    const { samples } = this.#tally
    if (samples === 0) return { samples, loss: 0 }
    return {
      ...lossMetrics(this.#tally),
      loss: this.#loss,
      policyLoss: this.#tally.loss,
      entropy: this.#entropy / samples,
      ...(rule.kl > 0 && { kl: this.#kl / samples }),
      ...(this.#values > 0 && { valueLoss: this.#value / this.#values }),
    }
  }
}

/** Returns the row, or throws if it is not an action row. `kind`: the kind of policy, for the message. */
export function actionRow(row: Row, at: number, kind: string): ActionRow {
  if (row.kind === 'action') return row
  throw new ManyworldsError(
    'ROW_INVALID',
    `row ${at} contains tokens; a ${kind} policy can only be trained on actions chosen from candidates`,
  )
}
