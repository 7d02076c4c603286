import { ManyworldsError } from '../../errors.ts'
import { importanceOf } from '../importance.ts'
import { type LossRule, type LossSettings, lossRule } from '../loss-settings.ts'
import type { TokenRow } from '../row.ts'
import type { LossCall } from './model.ts'
import type { Datum } from './wire.ts'

/**
 * How a loss is computed at Tinker, whose losses are sums over tokens, without weights for policy gradients:
 *
 * | ours        | theirs              | `logprobs` | `advantages` or `weights`       |
 * |-------------|---------------------|------------|---------------------------------|
 * | `is`        | importance_sampling | proximal   | weight · correction · advantage |
 * | `clip`      | ppo                 | proximal   | weight · correction · advantage |
 * | `cispo`     | cispo               | proximal   | weight · correction · advantage |
 * | `reinforce` | cross_entropy       |            | weight · correction · advantage |
 * | `sft`       | cross_entropy       |            | weight                          |
 *
 * Weight and correction are non-negative constants, so they can be part of the advantage: each of these losses is the advantage times a factor that
 * depends only on its sign.
 *
 * A KL divergence or the dual clip is part of none of them. These need the log-probabilities first. Then `cross_entropy`, a weighted sum of
 * log-probabilities, can produce any gradient: its weights are minus our derivatives. This is exact too, and costs a second forward pass.
 */
export type LossMapping =
  | { readonly how: 'direct'; readonly call: LossCall; readonly rule: LossRule }
  | { readonly how: 'derivative'; readonly rule: LossRule }

export const CROSS_ENTROPY: LossCall = { lossFn: 'cross_entropy' }

/** Above every ratio; Infinity may not survive serialization. */
const NO_BOUND = 1e30

/** Throws if Tinker cannot compute the loss. */
export function mapLoss(loss: LossSettings): LossMapping {
  const rule = lossRule(loss)
  if (rule.entropy > 0)
    refuse('`entropy` needs the log-probabilities of all tokens, but Tinker returns only those of sampled tokens')
  if (rule.value > 0)
    refuse('`value` needs a value head, which models at Tinker do not have; use group-relative advantages')
  if (rule.kl > 0 || rule.dualClip < Number.POSITIVE_INFINITY) return { how: 'derivative', rule }
  const bounds = {
    clip_low_threshold: rule.minRatio,
    clip_high_threshold: Math.min(rule.maxRatio, NO_BOUND),
  }
  switch (rule.name) {
    case 'is':
      return { how: 'direct', rule, call: { lossFn: 'importance_sampling' } }
    case 'clip':
      return { how: 'direct', rule, call: { lossFn: 'ppo', config: bounds } }
    case 'cispo':
      return { how: 'direct', rule, call: { lossFn: 'cispo', config: bounds } }
    case 'reinforce':
    case 'sft':
      return { how: 'direct', rule, call: CROSS_ENTROPY }
  }
}

function refuse(why: string): never {
  throw new ManyworldsError('CONFIG_INVALID', `Tinker cannot compute this loss: ${why}`)
}

/**
 * A row in Tinker's format: position i has token i and predicts token i + 1, so all other arrays are shifted by one.
 */
export function datumOf(row: TokenRow, rule: LossRule, { lossFn }: LossCall): Datum {
  const { behavior, proximal = behavior } = row
  const factor = (i: number) =>
    rule.name === 'sft'
      ? row.weight[i]!
      : row.weight[i]! * row.advantage[i]! * correctionOf(behavior[i]!, proximal[i]!, rule.maxWeight)
  const factors = shifted(row, factor)
  if (lossFn === 'cross_entropy') return datum(row, { weights: factors })
  return datum(row, { logprobs: shifted(row, (i) => proximal[i]!), advantages: factors })
}

/** A row whose loss is the sum of `weights[i]` times the negative log-probability of token i. */
export const weightedDatum = (row: TokenRow, weights: ArrayLike<number>): Datum =>
  datum(row, { weights: shifted(row, (i) => weights[i]!) })

/** A row that only requests log-probabilities. */
export const askedDatum = (row: TokenRow): Datum => datum(row, { weights: new Float32Array(row.ids.length - 1) })

const datum = ({ ids }: TokenRow, inputs: Datum['inputs']): Datum => ({
  tokens: ids.subarray(0, -1),
  inputs: { target_tokens: ids.subarray(1), ...inputs },
})

const correctionOf = (behavior: number, proximal: number, maxWeight: number) =>
  importanceOf({ logProb: proximal, behavior, proximal }, maxWeight).correction

/** 0 where a token is not trained on. */
function shifted({ ids, mask }: TokenRow, value: (i: number) => number): Float32Array {
  const values = new Float32Array(ids.length - 1)
  for (let i = 1; i < ids.length; i++) if (mask[i] === 1) values[i - 1] = value(i)
  return values
}

/** Returns the row, or throws if it is an action or Tinker would compute another loss for it. */
export function tokenRow(row: TokenRow | { readonly kind: 'action' }, at: number): TokenRow {
  if (row.kind === 'action')
    throw invalid(at, 'it contains an action chosen from candidates; a model at Tinker can only be trained on tokens')
  const { ids, mask, weight, temperature } = row
  if (temperature !== 1)
    throw invalid(
      at,
      `its temperature is ${temperature}, but Tinker computes log-probabilities at temperature 1; sample with temperature 1`,
    )
  if (ids.length < 2) throw invalid(at, `it has ${ids.length} tokens; at least 2 are needed`)
  if (mask[0] === 1) throw invalid(at, 'its first token cannot be trained on, because no token precedes it')
  const wrong = weight.findIndex((one, i) => mask[i] === 1 && one < 0)
  if (wrong !== -1) throw invalid(at, `\`weight\` must not be negative, number ${wrong} is ${weight[wrong]}`)
  return row
}

const invalid = (at: number, why: string) => new ManyworldsError('ROW_INVALID', `row ${at} of the batch: ${why}`)
