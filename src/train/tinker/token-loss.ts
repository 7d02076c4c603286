import { sampledKl } from '../divergence.ts'
import { exp, expm1 } from '../exact-math.ts'
import type { Metrics } from '../learner.ts'
import type { LossRule } from '../loss-settings.ts'
import { lossMetrics, newTally } from '../loss-tally.ts'
import { policyLoss } from '../losses.ts'
import type { TokenRow } from '../row.ts'

export interface KlSettings {
  /** Log-probabilities of the base model. */
  readonly reference: Float64Array
  readonly correction: boolean
}

/** The loss of rows of tokens by what a model said of them, and its derivatives. Figures are of all rows since it was made. */
export class TokenLoss {
  readonly #tally = newTally()
  #loss = 0
  #kl = 0

  /** The derivative of the row's loss by each log-probability; weights are in it. */
  byLogProb(row: TokenRow, rule: LossRule, logProbs: Float64Array, kl?: KlSettings): Float64Array {
    const { behaviour, proximal, advantage: advantages } = row
    const weights = row.weight.map((weight, i) => (row.mask[i] === 1 ? weight : 0))
    const { loss, byLogProb } = policyLoss({ logProbs, behaviour, proximal, advantages, weights }, rule, this.#tally)
    this.#loss += loss
    if (kl === undefined) return byLogProb
    for (let i = 0; i < weights.length; i++) {
      if (weights[i] === 0) continue
      const sample = { logProb: logProbs[i]!, behaviour: behaviour[i]!, proximal: proximal?.[i] }
      const penalty = penaltyOf({ ...sample, reference: kl.reference[i]! }, rule, kl.correction)
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

/** k3, weighted by how much more probable the token is now than it was when it was sampled; or alone. */
function penaltyOf(sample: Parameters<typeof sampledKl>[0], rule: LossRule, correction: boolean) {
  if (correction) return sampledKl(sample, rule.maxWeight)
  const d = sample.logProb - sample.reference
  return { value: expm1(-d) + d, byLogProb: 1 - exp(-d) }
}
