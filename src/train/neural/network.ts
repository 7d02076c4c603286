import { logSoftmax } from '../divergence.ts'
import { ActionIndex } from './action-index.ts'
import { Mlp } from './mlp.ts'
import { InputReader } from './read-inputs.ts'
import { type NeuralOptions, type NeuralSettings, networkSizes } from './settings.ts'

/**
 * The networks of a neural policy. Acting and training compute log-probabilities and values with this code, so they are
 * bit-identical.
 */
export class Network {
  readonly policy: Mlp
  readonly value: Mlp | undefined
  /** Weights of both networks, the policy's first. */
  readonly weightCount: number
  /** The inputs for the last question read: one per candidate or, with a list of actions, one for all. */
  readonly inputs: Float64Array[] = []
  /** The index of the network output for each candidate. */
  readonly outputIndexes: number[] = []
  readonly #actions: ActionIndex | undefined
  readonly #reader: InputReader
  readonly #observation: Float64Array
  readonly #seed: number | string

  constructor(name: string, options: NeuralOptions, settings: NeuralSettings) {
    const [policy, value] = networkSizes(settings)
    this.policy = new Mlp(policy!)
    this.value = value && new Mlp(value)
    this.weightCount = this.policy.weightCount + (this.value?.weightCount ?? 0)
    this.#actions = settings.actions === null ? undefined : new ActionIndex(name, settings.actions)
    this.#reader = new InputReader(name, options, settings)
    this.#observation = new Float64Array(settings.inputs.size)
    this.#seed = options.seed ?? 1
  }

  /** The initial weights. */
  firstWeights(): Float64Array<ArrayBuffer> {
    const weights = new Float64Array(this.weightCount)
    this.policy.draw(this.policyWeights(weights), this.#seed, 'policy')
    this.value?.draw(this.valueWeights(weights), this.#seed, 'value')
    return weights
  }

  policyWeights = (weights: Float64Array): Float64Array => weights.subarray(0, this.policy.weightCount)
  valueWeights = (weights: Float64Array): Float64Array => weights.subarray(this.policy.weightCount)

  /** Reads a question. All other methods refer to the last question read. */
  read(observation: unknown, candidates: readonly unknown[]): void {
    this.#reader.observation(observation, this.#observation)
    const [{ inputs, outputIndexes }, actions] = [this, this.#actions]
    outputIndexes.length = candidates.length
    if (actions !== undefined) {
      inputs[0] = this.#observation
      for (const [i, candidate] of candidates.entries()) outputIndexes[i] = actions.of(candidate)
      return
    }
    const { length } = this.#observation
    outputIndexes.fill(0)
    for (const [i, candidate] of candidates.entries()) {
      const input = (inputs[i] ??= new Float64Array(this.policy.sizes[0]!))
      input.set(this.#observation)
      this.#reader.candidate(observation, candidate, input, length)
    }
  }

  /** The input of the value network. */
  get observation(): Float64Array {
    return this.#observation
  }

  /** The log-probability of each candidate. */
  logProbs(weights: Float64Array): Float64Array {
    const own = this.policyWeights(weights)
    const logits = new Float64Array(this.outputIndexes.length)
    if (this.#actions === undefined)
      for (let i = 0; i < logits.length; i++) logits[i] = this.policy.forward(own, this.inputs[i]!)[0]!
    else {
      const outputs = this.policy.forward(own, this.inputs[0]!)
      for (let i = 0; i < logits.length; i++) logits[i] = outputs[this.outputIndexes[i]!]!
    }
    return logSoftmax(logits)
  }

  /**
   * The predicted return of the rest of the episode, for the question read or another observation; undefined without a
   * value network.
   */
  valueOf(weights: Float64Array, observation?: unknown): number | undefined {
    if (observation !== undefined) this.#reader.observation(observation, this.#observation)
    return this.value?.forward(this.valueWeights(weights), this.#observation)[0]
  }
}
