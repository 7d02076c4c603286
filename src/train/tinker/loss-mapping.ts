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
 * Weight and correction are constants that are not negative, so they may be in the advantage: every one of these losses is the advantage
 * times something that depends on its sign alone.
 *
 * What is in none of them, a KL divergence and the dual clip, needs the log-probabilities first. Then `cross_entropy`, a weighted sum of
 * log-probabilities, has any gradient one likes: its weights are minus our derivatives. That is exact too, and costs a second forward pass.
 */
export type LossMapping =
  | { readonly how: 'direct'; readonly call: LossCall; readonly rule: LossRule }
  | { readonly how: 'derivative'; readonly rule: LossRule }

export const CROSS_ENTROPY: LossCall = { lossFn: 'cross_entropy' }

/** No ratio is above it; Infinity may not survive the way. */
const NO_BOUND = 1e30

/** Refuses what cannot be computed there. */
export function mapLoss(loss: LossSettings): LossMapping {
  const rule = lossRule(loss)
  if (rule.entropy > 0)
    refuse(
      '`entropy`: Tinker tells the log-probabilities of the sampled tokens only, and the entropy needs all of them',
    )
  if (rule.value > 0) refuse('`value`: models at Tinker have no value head; use advantages within groups')
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
  throw new ManyworldsError('CONFIG_INVALID', `this loss cannot be had at Tinker: ${why}; leave it out`)
}

/** A row as Tinker takes it: position i has token i, and is asked for token i + 1, so everything else moves by one. */
export function datumOf(row: TokenRow, rule: LossRule, { lossFn }: LossCall): Datum {
  const { behaviour, proximal = behaviour } = row
  const factor = (i: number) =>
    rule.name === 'sft'
      ? row.weight[i]!
      : row.weight[i]! * row.advantage[i]! * correctionOf(behaviour[i]!, proximal[i]!, rule.maxWeight)
  const factors = shifted(row, factor)
  if (lossFn === 'cross_entropy') return datum(row, { weights: factors })
  return datum(row, { logprobs: shifted(row, (i) => proximal[i]!), advantages: factors })
}

/** A row whose loss is the sum of `weights[i]` times minus the log-probability of token i. */
export const weightedDatum = (row: TokenRow, weights: ArrayLike<number>): Datum =>
  datum(row, { weights: shifted(row, (i) => weights[i]!) })

/** A row that is only asked for its log-probabilities. */
export const askedDatum = (row: TokenRow): Datum => datum(row, { weights: new Float32Array(row.ids.length - 1) })

const datum = ({ ids }: TokenRow, inputs: Datum['inputs']): Datum => ({
  tokens: ids.subarray(0, -1),
  inputs: { target_tokens: ids.subarray(1), ...inputs },
})

const correctionOf = (behaviour: number, proximal: number, maxWeight: number) =>
  importanceOf({ logProb: proximal, behaviour, proximal }, maxWeight).correction

/** 0 where a token is not trained. */
function shifted({ ids, mask }: TokenRow, value: (i: number) => number): Float32Array {
  const values = new Float32Array(ids.length - 1)
  for (let i = 1; i < ids.length; i++) if (mask[i] === 1) values[i - 1] = value(i)
  return values
}

/** Rows of another kind, and those that Tinker would compute something else for. */
export function tokenRow(row: TokenRow | { readonly kind: 'action' }, at: number): TokenRow {
  if (row.kind === 'action') throw invalid(at, 'it is an action among candidates; a model at Tinker learns from tokens')
  const { ids, mask, weight, temperature } = row
  if (temperature !== 1)
    throw invalid(at, `its temperature is ${temperature}, and Tinker computes log-probabilities at 1: sample with 1`)
  if (ids.length < 2) throw invalid(at, `it has ${ids.length} tokens; a token is learned from those before it`)
  if (mask[0] === 1) throw invalid(at, 'its first token is to be trained, and there is none before it')
  const wrong = weight.findIndex((one, i) => mask[i] === 1 && one < 0)
  if (wrong !== -1) throw invalid(at, `\`weight\` must not be negative, number ${wrong} is ${weight[wrong]}`)
  return row
}

const invalid = (at: number, why: string) => new ManyworldsError('ROW_INVALID', `row ${at} of the batch: ${why}`)
