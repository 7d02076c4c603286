import { ManyworldsError } from '../../errors.ts'

/** A feature: its name, which counts 1, or its name and a number. */
export type Feature = string | readonly [name: string, value: number]

/** What a softmax policy is made of. Nothing of it may change between acting and learning. */
export interface SoftmaxOptions<Observation = unknown, Action = unknown> {
  /** Default `softmax`. */
  readonly name?: string
  /** What is seen of a candidate; left out: words, numbers and their pairs, see `DEFAULT_FEATURES`. */
  readonly features?: (observation: Observation, candidate: Action) => Iterable<Feature>
  /** There are 2^bits weights; features that share one get in each other's way. 4 to 24; default 16. */
  readonly bits?: number
  /** Above 1: more chance; below: less. Default 1. */
  readonly temperature?: number
  /** A second set of weights that says how the episode will end, from the observation alone: true, or with features of its own. */
  readonly value?: boolean | ((observation: Observation) => Iterable<Feature>)
}

/** What weights fit, and what is stored with them. */
export interface SoftmaxSettings {
  readonly bits: number
  readonly temperature: number
  /** `default.1`, or `own`. */
  readonly features: string
  readonly hasValue: boolean
}

export function checkSoftmax(options: SoftmaxOptions<never, never>): void {
  const { name = 'softmax', features, bits = 16, temperature = 1, value } = options
  const refuse = (problem: string) => {
    throw new ManyworldsError('POLICY_INVALID', `softmaxPolicy: ${problem}`)
  }
  if (typeof name !== 'string' || name === '')
    refuse(`\`name\` must be a text that is not empty, it is ${String(name)}`)
  if (features !== undefined && typeof features !== 'function')
    refuse(
      '`features` must be a function of the observation and a candidate that returns texts and [text, number] pairs',
    )
  if (!Number.isInteger(bits) || bits < 4 || bits > 24)
    refuse(`\`bits\` must be a whole number from 4 to 24, it is ${bits}`)
  if (!Number.isFinite(temperature) || temperature <= 0) refuse(`\`temperature\` must be above 0, it is ${temperature}`)
  if (value !== undefined && typeof value !== 'boolean' && typeof value !== 'function')
    refuse('`value` must be true, false or a function of the observation')
}
