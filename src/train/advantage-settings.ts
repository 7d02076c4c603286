import { ManyworldsError } from '../errors.ts'
import type { GrpoSettings } from './advantages.ts'
import { checkKeys } from './check-keys.ts'

/** How the advantage of each action is computed: how much better it was than expected. */
export type AdvantageSettings =
  /**
   * Group-relative: the episode's reward compared with the other rewards of its group. All actions of an episode get
   * the same advantage.
   */
  | ({ readonly name: 'grpo' } & GrpoSettings)
  | { readonly name: 'rloo' }
  /**
   * The discounted return from each action on, minus a baseline: the mean of this batch, the running mean of all
   * earlier batches, or none.
   */
  | ({
      readonly name: 'reinforce'
      readonly discount?: number
      readonly baseline?: 'batch' | 'running' | 'none'
    } & Normalize)
  /**
   * Rejection sampling: imitates the rollouts of each group that have its highest reward, at most `most` of them, if
   * that reward is at least `atLeast`. Use it with the loss 'sft'.
   */
  | { readonly name: 'best'; readonly most?: number; readonly atLeast?: number }
  /**
   * Generalized advantage estimation, for policies with a value head. With the default `lambda` of 1, the advantage is
   * the return minus the value.
   */
  | ({ readonly name: 'gae'; readonly discount?: number; readonly lambda?: number } & Normalize)

export interface Normalize {
  /** Subtract the batch mean from advantages and divide by the standard deviation. Default false. */
  readonly normalize?: boolean
}

/** The denominator of the loss: all actions of the batch, or the episodes and then the actions within each episode. */
export type Normalizer = 'actions' | 'episodes'

const NAMES = ['grpo', 'rloo', 'best', 'reinforce', 'gae']
const KEYS = {
  grpo: ['name', 'std', 'eps'],
  rloo: ['name'],
  best: ['name', 'most', 'atLeast'],
  reinforce: ['name', 'discount', 'baseline', 'normalize'],
  gae: ['name', 'discount', 'lambda', 'normalize'],
} as const

export function checkAdvantages(settings: AdvantageSettings): void {
  const refuse = (what: string) => {
    throw new ManyworldsError('CONFIG_INVALID', `\`advantages\` of the trainer: ${what}`)
  }
  if (typeof settings !== 'object' || settings === null || !NAMES.includes(settings.name))
    refuse(`give { name } with one of ${NAMES.join(', ')}`)
  checkKeys(settings, KEYS[settings.name], `\`advantages\` of '${settings.name}'`)
  const { most = 1, atLeast = 0 } = settings as { most?: number; atLeast?: number }
  if (!Number.isInteger(most) || most < 1) refuse(`\`most\` must be a whole number of at least 1, it is ${most}`)
  if (!Number.isFinite(atLeast)) refuse(`\`atLeast\` must be a number, it is ${atLeast}`)
  const { discount, lambda, baseline, normalize } = settings as {
    discount?: number
    lambda?: number
    baseline?: string
    normalize?: boolean
  }
  for (const [key, value] of Object.entries({ discount, lambda }))
    if (value !== undefined && !(value >= 0 && value <= 1)) refuse(`\`${key}\` must be between 0 and 1, it is ${value}`)
  if (baseline !== undefined && !['batch', 'running', 'none'].includes(baseline))
    refuse(`\`baseline\` must be 'batch', 'running' or 'none', it is '${baseline}'`)
  if (normalize !== undefined && typeof normalize !== 'boolean')
    refuse(`\`normalize\` must be true or false, it is ${String(normalize)}`)
}
