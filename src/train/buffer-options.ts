import { ManyworldsError } from '../errors.ts'
import type { Split } from '../trajectory/trajectory.ts'
import { grpo } from './advantages.ts'
import { checkFailedPolicy, type FailedPolicy } from './failed-rollouts.ts'
import type { AdvantageRule } from './open-group.ts'

export interface ExperienceBufferOptions {
  /** The most trajectories that are held, those of open groups included. Default 100,000. */
  readonly capacity?: number
  /** For samples. Default 0. */
  readonly seed?: number | string
  /** What failed rollouts count. Default `'drop'`. */
  readonly failed?: FailedPolicy
  /** Fixes the advantages of a group when it closes. Default: each reward less the mean of its group. */
  readonly advantages?: AdvantageRule
  /** A group closes when so many of its members have come. Default: as their trajectories say (`group.size`). */
  readonly groupSize?: number
  /** The most groups that are open. Default 10,000. */
  readonly maxOpenGroups?: number
  /** Trajectories of other splits are left out. Default: `'train'`, and those that have none (null). */
  readonly splits?: readonly (Split | null)[]
  /** About so many of the newest trajectories are held as they came, which is fast; older ones are packed, which is small. Default 1,024. */
  readonly unpacked?: number
  /** Where to go on with samples, for a training that is resumed: `draws` of the buffer before. Default 0. */
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
