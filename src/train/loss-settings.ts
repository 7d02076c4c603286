import { ManyworldsError } from '../errors.ts'
import { checkKeys } from './check-keys.ts'
import { checkBetween, checkFinite } from './check-numbers.ts'

export const LOSS_NAMES = ['clip', 'is', 'cispo', 'reinforce', 'sft'] as const
export type LossName = (typeof LOSS_NAMES)[number]

/** How the loss of samples is computed. Formulas: docs/training.md. */
export interface LossSettings {
  readonly name: LossName
  /**
   * `clip` and `cispo`: the lower bound of the ratio is 1 - clipLow. Default .2 for `clip`, 1 (no bound) for `cispo`.
   */
  readonly clipLow?: number
  /** `clip` and `cispo`: the upper bound of the ratio is 1 + clipHigh. Default .2 for `clip`, 4 for `cispo`. */
  readonly clipHigh?: number
  /** `clip`: the upper bound of the ratio when the advantage is negative. Above 1, such as 3. Default: no bound. */
  readonly dualClip?: number
  /** The maximum of the weight proximal / behavior. At least 1. Default 2. */
  readonly maxWeight?: number
  /** Coefficient of the entropy, which is subtracted from the loss. Default 0. */
  readonly entropy?: number
  /** Coefficient of the KL divergence from the reference policy. Default 0. */
  readonly kl?: number
  /**
   * For tokens, whose KL divergence is estimated from samples: weight the estimate by p / behavior, which makes its
   * gradient unbiased. Default true. No effect on actions, whose KL divergence is exact.
   */
  readonly klCorrection?: boolean
  /** Coefficient of the value loss. Default 0. */
  readonly value?: number
}

/** Validated settings with all defaults. */
export interface LossRule {
  readonly name: LossName
  /** Bounds of the ratio. */
  readonly minRatio: number
  readonly maxRatio: number
  readonly dualClip: number
  readonly maxWeight: number
  readonly entropy: number
  readonly kl: number
  readonly klCorrection: boolean
  readonly value: number
}

const MAX_WEIGHT = 2
const KEYS = ['name', 'clipLow', 'clipHigh', 'dualClip', 'maxWeight', 'entropy', 'kl', 'klCorrection', 'value']
const DEFAULT_CLIP: Readonly<Record<LossName, { readonly low: number; readonly high: number } | undefined>> = {
  clip: { low: 0.2, high: 0.2 },
  // One-sided, as in the CISPO paper: small ratios are harmless because they have little weight.
  cispo: { low: 1, high: 4 },
  is: undefined,
  reinforce: undefined,
  sft: undefined,
}

/** Validates settings and fills in defaults. */
export function lossRule(settings: LossSettings): LossRule {
  const { name, dualClip, maxWeight = MAX_WEIGHT, entropy = 0, kl = 0, klCorrection = true, value = 0 } = settings
  if (!LOSS_NAMES.includes(name))
    throw new ManyworldsError(
      'CONFIG_INVALID',
      `unknown loss ${JSON.stringify(name)}; use one of ${LOSS_NAMES.join(', ')}`,
    )
  checkKeys(settings, KEYS, '`loss`')
  const clip = DEFAULT_CLIP[name]
  if (!clip) refuse(settings, ['clipLow', 'clipHigh'])
  if (name !== 'clip') refuse(settings, ['dualClip'])
  if (name === 'sft') refuse(settings, ['maxWeight'])
  const { clipLow = clip?.low ?? 1, clipHigh = clip?.high ?? Number.POSITIVE_INFINITY } = settings
  checkBetween('clipLow', clipLow, 0, 1)
  checkBetween('clipHigh', clipHigh, 0, Number.POSITIVE_INFINITY)
  if (dualClip !== undefined && !(dualClip > 1))
    throw new ManyworldsError('CONFIG_INVALID', `\`dualClip\` must be a number above 1, such as 3; it is ${dualClip}`)
  checkBetween('maxWeight', maxWeight, 1, Number.POSITIVE_INFINITY)
  for (const [key, coefficient] of Object.entries({ entropy, kl, value })) {
    checkFinite(key, coefficient)
    checkBetween(key, coefficient, 0, Number.POSITIVE_INFINITY)
  }
  return {
    name,
    minRatio: 1 - clipLow,
    maxRatio: 1 + clipHigh,
    dualClip: dualClip ?? Number.POSITIVE_INFINITY,
    maxWeight,
    entropy,
    kl,
    klCorrection,
    value,
  }
}

function refuse(settings: LossSettings, keys: readonly (keyof LossSettings)[]): void {
  const key = keys.find((key) => settings[key] !== undefined)
  if (key)
    throw new ManyworldsError('CONFIG_INVALID', `\`${key}\` has no effect on the loss '${settings.name}': leave it out`)
}
