import { seeded } from '../../dist/random.js'
import type { TokenRow } from '../../dist/train/index.js'
import { type LossSettings, lossRule } from '../../dist/train/loss-settings.js'
import { policyLoss } from '../../dist/train/losses.js'
import { logProbsAfter, VOCABULARY } from './tinker-model.ts'

/** Numbers that float32 holds exactly, as their products do: nothing is lost on the way to Tinker. */
const dyadic = (random: () => number, most: number) => (Math.round(random() * 32) / 16 - 1) * most

export interface RowsOptions {
  /** Where the learner was when the update began, in nats from the policy that acted. Left out: at the same place. */
  readonly stale?: (random: () => number) => number
  readonly temperature?: number
}

/** Rows with prompts, answers of tools in between, and log-probabilities about those of the model. */
export function tokenRows(
  count: number,
  delta: Float64Array,
  { stale, temperature = 1 }: RowsOptions = {},
): TokenRow[] {
  const random = seeded(7)
  return Array.from({ length: count }, (_, row) => {
    const length = 4 + (row % 5)
    const ids = Int32Array.from({ length }, () => Math.floor(random() * VOCABULARY))
    const mask = Uint8Array.from({ length }, (_, i) => (i === 0 || (row % 3 === 1 && i === 2) ? 0 : 1))
    const now = logProbsOf(ids, delta)
    // Far enough from the model for every bound to take effect somewhere.
    const behavior = now.map((logProb) => Math.fround(Math.min(logProb + dyadic(random, 1), 0)))
    const proximal = stale && behavior.map((logProb) => Math.fround(logProb + stale(random)))
    const advantage = behavior.map(() => dyadic(random, 2))
    const weight = behavior.map(() => 1 / 32)
    return {
      ...{ kind: 'tokens', ids, mask, behavior, advantage, weight, temperature, version: 0 },
      ...(proximal && { proximal }),
    }
  })
}

/** Of every token; 0 for the first. */
export const logProbsOf = (ids: Int32Array, delta: Float64Array): Float64Array =>
  Float64Array.from(ids, (id, i) => (i === 0 ? 0 : logProbsAfter(delta, ids[0]!, ids[i - 1]!)[id]!))

/** The loss and the gradient by our own formulas, with the derivative of each log-probability of the model of the server. */
export function ourGradient(rows: readonly TokenRow[], loss: LossSettings, delta: Float64Array) {
  return gradientBy(rows, delta, (row, logProbs) => {
    const weights = row.weight.map((weight, i) => (row.mask[i] === 1 ? weight : 0))
    const samples = { logProbs, behavior: row.behavior, proximal: row.proximal, advantages: row.advantage, weights }
    return policyLoss(samples, lossRule(loss))
  })
}

export function gradientBy(
  rows: readonly TokenRow[],
  delta: Float64Array,
  lossOf: (row: TokenRow, logProbs: Float64Array) => { loss: number; byLogProb: Float64Array },
) {
  const gradient = new Float64Array(delta.length)
  let sum = 0
  for (const row of rows) {
    const { ids } = row
    const { loss, byLogProb } = lossOf(row, logProbsOf(ids, delta))
    sum += loss
    for (let i = 1; i < ids.length; i++) {
      const all = logProbsAfter(delta, ids[0]!, ids[i - 1]!)
      for (const at of [ids[i - 1]! * VOCABULARY, VOCABULARY * VOCABULARY + ids[0]! * VOCABULARY])
        for (let v = 0; v < VOCABULARY; v++)
          gradient[at + v] = gradient[at + v]! + byLogProb[i]! * ((v === ids[i] ? 1 : 0) - Math.exp(all[v]!))
    }
  }
  return { loss: sum, gradient }
}

/** The largest difference. */
export const distance = (one: ArrayLike<number>, other: ArrayLike<number>): number => {
  let most = one.length === other.length ? 0 : Number.POSITIVE_INFINITY
  for (let i = 0; i < one.length; i++) most = Math.max(most, Math.abs(one[i]! - other[i]!))
  return most
}
