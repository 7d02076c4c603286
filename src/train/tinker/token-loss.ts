import { sampledKl } from '../divergence.ts'
import type { Metrics } from '../learner.ts'
import type { LossRule } from '../loss-settings.ts'
import { lossMetrics, newTally } from '../loss-tally.ts'
import { asSampled, policyLoss } from '../losses.ts'
import type { TokenRow } from '../row.ts'

/**
 * Computes the loss of token rows from a model's log-probabilities, and its derivatives. Metrics cover all rows added.
 */
export class TokenLoss {
  readonly #tally = newTally()
  #loss = 0
  #kl = 0

  /**
   * The derivative of the row's loss with respect to each log-probability, multiplied by the weights. `reference`: the
   * log-probabilities of the base model.
   */
  byLogProb(row: TokenRow, rule: LossRule, logProbs: Float64Array, reference?: Float64Array): Float64Array {
    const { behavior, proximal, advantage: advantages } = row
    const weights = row.weight.map((weight, i) => (row.mask[i] === 1 ? weight : 0))
    const { loss, byLogProb } = policyLoss({ logProbs, behavior, proximal, advantages, weights }, rule, this.#tally)
    this.#loss += loss
    if (reference === undefined) return byLogProb
    for (let i = 0; i < weights.length; i++) {
      if (weights[i] === 0) continue
      const sample = { logProb: logProbs[i]!, behavior: behavior[i]!, proximal: proximal?.[i] }
      const penalty = sampledKl(asSampled({ ...sample, reference: reference[i]! }, rule), rule)
      this.#kl += penalty.value
      this.#loss += weights[i]! * rule.kl * penalty.value
      byLogProb[i] = byLogProb[i]! + weights[i]! * rule.kl * penalty.byLogProb
    }
    return byLogProb
  }

  metrics(rule: LossRule): Metrics {
    const { samples, loss } = this.#tally
    const kl = rule.kl > 0 && samples > 0 ? { kl: this.#kl / samples } : {}
    return { ...lossMetrics(this.#tally), loss: this.#loss, policyLoss: loss, ...kl }
  }
}
