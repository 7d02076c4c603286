import { ActionLoss, actionRow } from '../action-loss.ts'
import { Adam } from '../adam.ts'
import { ByteWriter } from '../bytes.ts'
import type { GradientCore, Metrics } from '../learner.ts'
import { type LossRule, type LossSettings, lossRule } from '../loss-settings.ts'
import { readPacked } from '../read-packed.ts'
import type { ActionRow, Row } from '../row.ts'
import { Backward } from './backward.ts'
import { type Jax, loadJax } from './load-jax.ts'
import { Network } from './network.ts'
import type { NeuralPolicy } from './neural-policy.ts'
import type { NeuralOptions, NeuralSettings } from './settings.ts'
import { packWeights, readHeader, unpackWeights, writeHeader } from './weights.ts'

/** "MWNS", as bytes. */
const MAGIC = 0x534e574d

export interface NeuralCoreOptions {
  /** The version to start with; default: untrained. */
  readonly from?: Uint8Array
  /** The reference version of the KL divergence; default: the version to start with. */
  readonly reference?: Uint8Array
}

/**
 * The gradient of a neural policy. Log-probabilities, values and the loss are computed in float64 by the same code as
 * acting, so the ratio to the acting policy is exactly 1 for the same version. The derivatives are backpropagated
 * through the networks with jax-js, in float32.
 */
export async function neuralCore<Observation, Action>(
  policy: NeuralPolicy<Observation, Action>,
  { from, reference = from }: NeuralCoreOptions = {},
): Promise<NeuralCore> {
  const { name, settings } = policy
  const network = new Network(name, policy.options as NeuralOptions, settings)
  const weightsOf = (bytes: Uint8Array | undefined) =>
    bytes ? unpackWeights(bytes, settings, name) : network.firstWeights()
  return new NeuralCore(name, settings, network, await loadJax(), weightsOf(from), weightsOf(reference))
}

export class NeuralCore implements GradientCore {
  readonly policy: string
  values?: (observations: readonly unknown[]) => Promise<Float64Array>
  readonly #settings: NeuralSettings
  readonly #network: Network
  readonly #policyBackward: Backward
  readonly #valueBackward: Backward | undefined
  readonly #gradient: Float64Array
  readonly #byOutputs: Float64Array
  #weights: Float64Array
  #reference: Float64Array
  #adam: Adam
  /** The loss of the rows since the last step. */
  #loss = new ActionLoss()

  constructor(
    policy: string,
    settings: NeuralSettings,
    network: Network,
    jax: Jax,
    weights: Float64Array,
    reference: Float64Array,
  ) {
    this.policy = policy
    this.#settings = settings
    this.#network = network
    this.#policyBackward = new Backward(jax, network.policy)
    this.#valueBackward = network.value && new Backward(jax, network.value)
    this.#gradient = new Float64Array(weights.length)
    this.#byOutputs = new Float64Array(network.policy.sizes.at(-1)!)
    this.#weights = weights
    this.#reference = reference
    this.#adam = new Adam(weights.length)
    if (settings.hasValue)
      this.values = async (observations) =>
        Float64Array.from(observations, (observation) => network.valueOf(this.#weights, observation)!)
  }

  async forward(rows: readonly Row[], of: 'current' | 'reference') {
    const weights = of === 'current' ? this.#weights : this.#reference
    const values = new Float64Array(this.#settings.hasValue ? rows.length : 0)
    const logProbs = rows.map((row, at) => {
      const { observation, candidates, index } = actionRow(row, at, 'neural')
      this.#network.read(observation, candidates)
      if (this.#settings.hasValue) values[at] = this.#network.valueOf(weights)!
      return Float64Array.of(this.#network.logProbs(weights)[index]!)
    })
    return this.#settings.hasValue ? { logProbs, values } : { logProbs }
  }

  async forwardBackward(rows: readonly Row[], loss: LossSettings): Promise<Metrics> {
    const rule = lossRule(loss)
    for (const [at, row] of rows.entries()) this.#add(actionRow(row, at, 'neural'), rule)
    return this.#loss.metrics(rule)
  }

  async optimStep(options: { readonly lr: number; readonly clipNorm?: number }): Promise<Metrics> {
    this.#flush()
    this.#loss = new ActionLoss()
    return this.#adam.step(this.#weights, this.#gradient, options)
  }

  /** The accumulated gradient. */
  gradient(): Float64Array {
    this.#flush()
    return this.#gradient.slice()
  }

  weights(): Uint8Array<ArrayBuffer> {
    return packWeights(this.#settings, this.#weights)
  }

  state(): Uint8Array<ArrayBuffer> {
    const out = new ByteWriter()
    writeHeader(out, MAGIC, this.#settings)
    out.vector(this.#weights)
    out.vector(this.#reference)
    this.#adam.write(out)
    return out.finish()
  }

  load(state: Uint8Array): void {
    const count = this.#weights.length
    readPacked(state, `the state of a learner of policy '${this.policy}'`, (reader) => {
      readHeader(reader, MAGIC, this.#settings, this.policy)
      const [weights, reference] = [reader.vector(count), reader.vector(count)]
      const adam = Adam.read(reader, count)
      reader.end()
      // Assigned after everything was read, so that damaged bytes change nothing.
      this.#weights = weights
      this.#reference = reference
      this.#adam = adam
    })
    this.#policyBackward.drop()
    this.#valueBackward?.drop()
    this.#gradient.fill(0)
    this.#loss = new ActionLoss()
  }

  #add(row: ActionRow, rule: LossRule): void {
    if (row.weight === 0) return
    const network = this.#network
    network.read(row.observation, row.candidates)
    const logProbs = network.logProbs(this.#weights)
    const reference = rule.kl > 0 ? network.logProbs(this.#reference) : undefined
    this.#addLogits(this.#loss.byLogits(row, rule, logProbs, reference))
    if (network.value === undefined || rule.value === 0) return
    const byValue = this.#loss.byValue(row, rule, network.valueOf(this.#weights)!)
    const [weights, gradient] = [network.valueWeights(this.#weights), network.valueWeights(this.#gradient)]
    this.#valueBackward!.add(network.observation, Float64Array.of(byValue), weights, gradient)
  }

  #addLogits(byLogit: Float64Array): void {
    const { inputs, outputIndexes, policyWeights } = this.#network
    const [weights, gradient] = [policyWeights(this.#weights), policyWeights(this.#gradient)]
    if (this.#settings.actions === null) {
      for (let i = 0; i < byLogit.length; i++)
        this.#policyBackward.add(inputs[i]!, byLogit.subarray(i, i + 1), weights, gradient)
      return
    }
    const byOutputs = this.#byOutputs.fill(0)
    for (let i = 0; i < byLogit.length; i++) byOutputs[outputIndexes[i]!] = byOutputs[outputIndexes[i]!]! + byLogit[i]!
    this.#policyBackward.add(inputs[0]!, byOutputs, weights, gradient)
  }

  #flush(): void {
    const { policyWeights, valueWeights } = this.#network
    this.#policyBackward.flush(policyWeights(this.#weights), policyWeights(this.#gradient))
    this.#valueBackward?.flush(valueWeights(this.#weights), valueWeights(this.#gradient))
  }
}
