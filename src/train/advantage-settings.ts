import { ManyworldsError } from '../errors.ts'
import type { GrpoSettings } from './advantages.ts'
import { checkKeys } from './check-keys.ts'

/** How good each action of an episode was, compared with what could be expected. */
export type AdvantageSettings =
  /** The reward of the episode, compared with those of its group: each of its actions has the same advantage. */
  | ({ readonly name: 'grpo' } & GrpoSettings)
  | { readonly name: 'rloo' }
  /** The discounted return from each action on, less a baseline: that of the batch, that of all batches so far, or none. */
  | ({
      readonly name: 'reinforce'
      readonly discount?: number
      readonly baseline?: 'batch' | 'running' | 'none'
    } & Normalize)
  /** Rejection sampling: of each group those with the highest reward are imitated, at most `most` of equals, if it is at least `atLeast`. Goes with the loss 'sft'. */
  | { readonly name: 'best'; readonly most?: number; readonly atLeast?: number }
  /** For policies with a value head: what came of an action, compared with what its value was. With the default `lambda` of 1 it is the return less the value. */
  | ({ readonly name: 'gae'; readonly discount?: number; readonly lambda?: number } & Normalize)

interface Normalize {
  /** Advantages less the mean of the batch, over their standard deviation. Default false. */
  readonly normalize?: boolean
}

/** What the loss is divided by: the actions of the batch, or its episodes and in each of them its actions. */
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
