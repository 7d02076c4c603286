import { ManyworldsError } from '../errors.ts'
import type { Split } from '../trajectory/trajectory.ts'
import { grpo } from './advantages.ts'
import { checkFailedPolicy, type FailedPolicy } from './failed-rollouts.ts'
import type { AdvantageRule } from './open-group.ts'

export interface ExperienceBufferOptions {
  /** The maximum number of trajectories held, including those of open groups. Default 100,000. */
  readonly capacity?: number
  /** The seed for sampling. Default 0. */
  readonly seed?: number | string
  /** What failed rollouts count as. Default `'drop'`. */
  readonly failed?: FailedPolicy
  /** Computes the advantages of a group when it closes. Default: each reward minus the mean of its group. */
  readonly advantages?: AdvantageRule
  /** A group closes when this many of its members were added. Default: `group.size` of their trajectories. */
  readonly groupSize?: number
  /** The maximum number of open groups. Default 10,000. */
  readonly maxOpenGroups?: number
  /**
   * The splits to accept; other trajectories are left out. Default: `'train'`, and trajectories without a split (null).
   */
  readonly splits?: readonly (Split | null)[]
  /**
   * About how many of the newest trajectories are held uncompressed, for speed; older ones are compressed. Default
   * 1,024.
   */
  readonly unpacked?: number
  /** Where to continue sampling when a training is resumed: `draws` of the previous buffer. Default 0. */
  readonly draws?: number
}

export type CheckedOptions = Required<Omit<ExperienceBufferOptions, 'groupSize'>> & {
  readonly groupSize: number | undefined
}

const MINUS_MEAN: AdvantageRule = (groups) => grpo(groups, { std: false })

const DEFAULTS = {
  capacity: 100_000,
  seed: 0,
  failed: 'drop',
  advantages: MINUS_MEAN,
  maxOpenGroups: 10_000,
  splits: ['train', null],
  unpacked: 1024,
  draws: 0,
} as const satisfies ExperienceBufferOptions

const KEYS = [...Object.keys(DEFAULTS), 'groupSize']

export function checkedOptions(options: ExperienceBufferOptions): CheckedOptions {
  for (const key of Object.keys(options))
    if (!KEYS.includes(key)) throw invalid(`an ExperienceBuffer has no option \`${key}\`; it has ${KEYS.join(', ')}`)
  const given = Object.fromEntries(Object.entries(options).filter(([, value]) => value !== undefined))
  const checked: CheckedOptions = { groupSize: undefined, ...DEFAULTS, ...given }
  checkCount('capacity', checked.capacity, 1)
  checkCount('maxOpenGroups', checked.maxOpenGroups, 1)
  checkCount('draws', checked.draws, 0)
  if (checked.unpacked !== Number.POSITIVE_INFINITY) checkCount('unpacked', checked.unpacked, 0)
  if (checked.groupSize !== undefined) checkCount('groupSize', checked.groupSize, 1)
  if (typeof checked.advantages !== 'function') throw invalid('`advantages` must be a function, such as grpo')
  checkFailedPolicy(checked.failed)
  return checked
}

export function checkCount(name: string, value: unknown, least: number): void {
  if (!Number.isSafeInteger(value) || (value as number) < least)
    throw invalid(`\`${name}\` must be a whole number of at least ${least}, it is ${String(value)}`)
}

const invalid = (message: string) => new ManyworldsError('CONFIG_INVALID', message)
