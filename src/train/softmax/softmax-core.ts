import { ActionLoss, actionRow } from '../action-loss.ts'
import { Adam } from '../adam.ts'
import { ByteWriter } from '../bytes.ts'
import type { GradientCore, Metrics } from '../learner.ts'
import { type LossRule, type LossSettings, lossRule } from '../loss-settings.ts'
import { readPacked } from '../read-packed.ts'
import type { ActionRow, Row } from '../row.ts'
import { Scorer } from './scorer.ts'
import type { SoftmaxOptions, SoftmaxSettings } from './settings.ts'
import type { SoftmaxPolicy } from './softmax-policy.ts'
import { countWeights, packWeights, readHeader, unpackWeights, writeHeader } from './weights.ts'

/** "MWSS", as bytes. */
const MAGIC = 0x5353574d

/**
 * The gradient of a softmax policy, in closed form. Rows are added one by one, in order, to one gradient and one tally,
 * so the result is bit-identical for any split into micro-batches.
 */
export function softmaxCore<Observation, Action>(
  policy: SoftmaxPolicy<Observation, Action>,
  { from, reference = from }: SoftmaxCoreOptions = {},
): SoftmaxCore {
  const { name, settings } = policy
  const weightsOf = (bytes: Uint8Array | undefined) =>
    bytes ? unpackWeights(bytes, settings, name) : new Float64Array(countWeights(settings))
  return new SoftmaxCore(name, policy.options as SoftmaxOptions, settings, weightsOf(from), weightsOf(reference))
}

export interface SoftmaxCoreOptions {
  /** The version to start with; default: untrained. */
  readonly from?: Uint8Array
  /** The reference version of the KL divergence; default: the version to start with. */
  readonly reference?: Uint8Array
}

export class SoftmaxCore implements GradientCore {
  readonly policy: string
  values?: (observations: readonly unknown[]) => Promise<Float64Array>
  readonly #settings: SoftmaxSettings
  readonly #scorer: Scorer
  readonly #gradient: Float64Array
  #weights: Float64Array
  #reference: Float64Array
  #adam: Adam
  /** The loss of the rows since the last step. */
  #loss = new ActionLoss()

  constructor(
    policy: string,
    options: SoftmaxOptions,
    settings: SoftmaxSettings,
    weights: Float64Array,
    reference: Float64Array,
  ) {
    this.policy = policy
    this.#settings = settings
    this.#scorer = new Scorer(options, settings.bits)
    this.#gradient = new Float64Array(weights.length)
    this.#weights = weights
    this.#reference = reference
    this.#adam = new Adam(weights.length)
    if (settings.hasValue)
      this.values = async (observations) =>
        Float64Array.from(observations, (observation) => {
          this.#scorer.features.length = 0
          return this.#value(this.#weights, observation).value
        })
  }

  async forward(rows: readonly Row[], of: 'current' | 'reference') {
    const weights = of === 'current' ? this.#weights : this.#reference
    const values = new Float64Array(this.#settings.hasValue ? rows.length : 0)
    const logProbs = rows.map((row, at) => {
      const { observation, candidates, index } = actionRow(row, at, 'softmax')
      this.#scorer.read(observation, candidates)
      if (this.#settings.hasValue) values[at] = this.#value(weights, observation).value
      return Float64Array.of(this.#scorer.logProbs(weights)[index]!)
    })
    return this.#settings.hasValue ? { logProbs, values } : { logProbs }
  }

  async forwardBackward(rows: readonly Row[], loss: LossSettings): Promise<Metrics> {
    const rule = lossRule(loss)
    for (const [at, row] of rows.entries()) this.#add(actionRow(row, at, 'softmax'), rule)
    return this.#loss.metrics(rule)
  }

  async optimStep(options: { readonly lr: number; readonly clipNorm?: number }): Promise<Metrics> {
    this.#loss = new ActionLoss()
    return this.#adam.step(this.#weights, this.#gradient, options)
  }

  /** The accumulated gradient. */
  gradient(): Float64Array {
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
    this.#gradient.fill(0)
    this.#loss = new ActionLoss()
  }

  /** Adds the gradient of a row: with respect to the scores, then to the weights of the features. */
  #add(row: ActionRow, rule: LossRule): void {
    if (row.weight === 0) return
    const { features, ends } = this.#scorer
    this.#scorer.read(row.observation, row.candidates)
    const logProbs = this.#scorer.logProbs(this.#weights)
    const reference = rule.kl > 0 ? this.#scorer.logProbs(this.#reference) : undefined
    const byLogit = this.#loss.byLogits(row, rule, logProbs, reference)
    for (let i = 0; i < ends.length; i++) {
      const byScore = byLogit[i]! / this.#settings.temperature
      features.addTo(this.#gradient, byScore, i === 0 ? 0 : ends[i - 1]!, ends[i]!)
    }
    if (!this.#settings.hasValue || rule.value === 0) return
    const { begin, value } = this.#value(this.#weights, row.observation)
    const gradient = this.#gradient.subarray(2 ** this.#settings.bits)
    features.addTo(gradient, this.#loss.byValue(row, rule, value), begin, features.length)
  }

  #value(weights: Float64Array, observation: unknown): { begin: number; value: number } {
    const { features } = this.#scorer
    const begin = this.#scorer.readValue(observation)
    return { begin, value: features.dot(weights.subarray(2 ** this.#settings.bits), begin, features.length) }
  }
}
