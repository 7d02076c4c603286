import { ManyworldsError } from '../../errors.ts'
import { exp, log } from '../exact-math.ts'
import { addDefaultFeatures, addObservation, Reading } from './default-features.ts'
import { FeatureList } from './feature-list.ts'
import { hashText } from './hash.ts'
import type { Feature, SoftmaxOptions } from './settings.ts'

/** What acts and what learns score candidates by the same code, so their log-probabilities are the same to the last bit. */
export class Scorer {
  readonly features: FeatureList
  /** Where the features of each candidate end. */
  readonly ends: number[] = []
  readonly #options: SoftmaxOptions
  readonly #temperature: number

  constructor(options: SoftmaxOptions, bits: number) {
    this.#options = options
    this.#temperature = options.temperature ?? 1
    this.features = new FeatureList(bits)
  }

  /** Makes the features of all candidates. */
  read(observation: unknown, candidates: readonly unknown[]): void {
    const { features, ends } = this
    const own = this.#options.features
    features.length = 0
    ends.length = 0
    const reading = own === undefined ? Reading.ofObservation(observation) : undefined
    for (const candidate of candidates) {
      if (reading !== undefined) addDefaultFeatures(features, reading, candidate)
      else this.#add(own!(observation, candidate))
      ends.push(features.length)
    }
  }

  /** Adds what the value head sees behind the candidates. Returns where that begins. */
  readValue(observation: unknown): number {
    const begin = this.features.length
    const { value } = this.#options
    if (typeof value === 'function') this.#add(value(observation))
    else addObservation(this.features, observation)
    return begin
  }

  /** The log-probability of each candidate that was read. */
  logProbs(weights: Float64Array): Float64Array {
    const { features, ends } = this
    const scores = new Float64Array(ends.length)
    let best = -Infinity
    for (let i = 0; i < scores.length; i++) {
      const score = features.dot(weights, i === 0 ? 0 : ends[i - 1]!, ends[i]!) / this.#temperature
      scores[i] = score
      if (score > best) best = score
    }
    let sum = 0
    for (const score of scores) sum += exp(score - best)
    const norm = best + log(sum)
    for (let i = 0; i < scores.length; i++) scores[i] = scores[i]! - norm
    return scores
  }

  #add(own: Iterable<Feature>): void {
    for (const feature of own) {
      const [name, value] = typeof feature === 'string' ? [feature, 1] : feature
      if (typeof name !== 'string' || typeof value !== 'number' || !Number.isFinite(value))
        throw new ManyworldsError(
          'POLICY_INVALID',
          `features of policy '${this.#options.name ?? 'softmax'}' must be texts or [text, finite number]; one is ${JSON.stringify(feature)}`,
        )
      this.features.add(hashText(name), value)
    }
  }
}
