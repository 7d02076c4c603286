import { logSoftmax } from '../divergence.ts'
import { ActionPlaces } from './action-places.ts'
import { Mlp } from './mlp.ts'
import { InputReader } from './read-inputs.ts'
import { type NeuralOptions, type NeuralSettings, networkSizes } from './settings.ts'

/**
 * The networks of a neural policy. What acts and what learns compute log-probabilities and values by this code, so they are the same to the
 * last bit.
 */
export class Network {
  readonly policy: Mlp
  readonly value: Mlp | undefined
  /** Of both, those of the policy first. */
  readonly weightCount: number
  /** The inputs of the question that was read: one for each candidate, or one for all if there is a list of actions. */
  readonly inputs: Float64Array[] = []
  /** Which output of the network belongs to each candidate. */
  readonly places: number[] = []
  readonly #actions: ActionPlaces | undefined
  readonly #reader: InputReader
  readonly #observation: Float64Array
  readonly #seed: number | string

  constructor(name: string, options: NeuralOptions, settings: NeuralSettings) {
    const [policy, value] = networkSizes(settings)
    this.policy = new Mlp(policy!)
    this.value = value && new Mlp(value)
    this.weightCount = this.policy.weightCount + (this.value?.weightCount ?? 0)
    this.#actions = settings.actions === null ? undefined : new ActionPlaces(name, settings.actions)
    this.#reader = new InputReader(name, options, settings)
    this.#observation = new Float64Array(settings.inputs.size)
    this.#seed = options.seed ?? 1
  }

  /** What it begins with. */
  firstWeights(): Float64Array<ArrayBuffer> {
    const weights = new Float64Array(this.weightCount)
    this.policy.draw(this.policyWeights(weights), this.#seed, 'policy')
    this.value?.draw(this.valueWeights(weights), this.#seed, 'value')
    return weights
  }

  policyWeights = (weights: Float64Array): Float64Array => weights.subarray(0, this.policy.weightCount)
  valueWeights = (weights: Float64Array): Float64Array => weights.subarray(this.policy.weightCount)

  /** Reads a question. All else is about the last one that was read. */
  read(observation: unknown, candidates: readonly unknown[]): void {
    this.#reader.observation(observation, this.#observation)
    const [{ inputs, places }, actions] = [this, this.#actions]
    places.length = candidates.length
    if (actions !== undefined) {
      inputs[0] = this.#observation
      for (const [i, candidate] of candidates.entries()) places[i] = actions.of(candidate)
      return
    }
    const { length } = this.#observation
    places.fill(0)
    for (const [i, candidate] of candidates.entries()) {
      const input = (inputs[i] ??= new Float64Array(this.policy.sizes[0]!))
      input.set(this.#observation)
      this.#reader.candidate(observation, candidate, input, length)
    }
  }

  /** What the value network is given. */
  get observation(): Float64Array {
    return this.#observation
  }

  /** The log-probability of each candidate. */
  logProbs(weights: Float64Array): Float64Array {
    const own = this.policyWeights(weights)
    const logits = new Float64Array(this.places.length)
    if (this.#actions === undefined)
      for (let i = 0; i < logits.length; i++) logits[i] = this.policy.forward(own, this.inputs[i]!)[0]!
    else {
      const outputs = this.policy.forward(own, this.inputs[0]!)
      for (let i = 0; i < logits.length; i++) logits[i] = outputs[this.places[i]!]!
    }
    return logSoftmax(logits)
  }

  /** What is expected of the rest of the episode, by the question that was read or another observation; undefined: there is no value network. */
  valueOf(weights: Float64Array, observation?: unknown): number | undefined {
    if (observation !== undefined) this.#reader.observation(observation, this.#observation)
    return this.value?.forward(this.valueWeights(weights), this.#observation)[0]
  }
}
