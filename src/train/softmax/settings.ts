import { ManyworldsError } from '../../errors.ts'

/** A feature: a name, with value 1, or a name and a value. */
export type Feature = string | readonly [name: string, value: number]

/** Options of a softmax policy. They must be the same for acting and training. */
export interface SoftmaxOptions<Observation = unknown, Action = unknown> {
  /** Default `softmax`. */
  readonly name?: string
  /** The features of a candidate; default: words, numbers and their pairs, see `DEFAULT_FEATURES`. */
  readonly features?: (observation: Observation, candidate: Action) => Iterable<Feature>
  /** There are 2^bits weights; features whose hashes collide share one. 4 to 24; default 16. */
  readonly bits?: number
  /** Above 1: more exploration; below 1: less. Default 1. */
  readonly temperature?: number
  /** Add a value head, which predicts the return from the observation: true, or a function for custom features. */
  readonly value?: boolean | ((observation: Observation) => Iterable<Feature>)
}

/** The settings that weights must match; stored with them. */
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
  if (typeof name !== 'string' || name === '') refuse(`\`name\` must be a non-empty string, it is ${String(name)}`)
  if (features !== undefined && typeof features !== 'function')
    refuse(
      '`features` must be a function of the observation and a candidate that returns strings or [string, number] pairs',
    )
  if (!Number.isInteger(bits) || bits < 4 || bits > 24)
    refuse(`\`bits\` must be a whole number from 4 to 24, it is ${bits}`)
  if (!Number.isFinite(temperature) || temperature <= 0) refuse(`\`temperature\` must be above 0, it is ${temperature}`)
  if (value !== undefined && typeof value !== 'boolean' && typeof value !== 'function')
    refuse('`value` must be true, false or a function of the observation')
}
