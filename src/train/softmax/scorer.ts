import { ManyworldsError } from '../../errors.ts'
import { exp, log } from '../exact-math.ts'
import { addDefaultFeatures, addObservation, Reading } from './default-features.ts'
import { FeatureList } from './feature-list.ts'
import { hashText } from './hash.ts'
import type { Feature, SoftmaxOptions } from './settings.ts'

/** Scores candidates. Acting and training use the same code, so their log-probabilities are bit-identical. */
export class Scorer {
  readonly features: FeatureList
  /** The end index of each candidate's features. */
  readonly ends: number[] = []
  readonly #options: SoftmaxOptions
  readonly #temperature: number

  constructor(options: SoftmaxOptions, bits: number) {
    this.#options = options
    this.#temperature = options.temperature ?? 1
    this.features = new FeatureList(bits)
  }

  /** Computes the features of all candidates. */
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

  /** Adds the features of the value head after those of the candidates. Returns their start index. */
  readValue(observation: unknown): number {
    const begin = this.features.length
    const { value } = this.#options
    if (typeof value === 'function') this.#add(value(observation))
    else addObservation(this.features, observation)
    return begin
  }

  /** The log-probability of each candidate read. */
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
          `features of policy '${this.#options.name ?? 'softmax'}' must be strings or [string, finite number] pairs; one is ${JSON.stringify(feature)}`,
        )
      this.features.add(hashText(name), value)
    }
  }
}
