import { ManyworldsError } from '../../errors.ts'
import { clipScale } from '../gradient-norm.ts'
import type { GradientCore, Metrics } from '../learner.ts'
import type { LossSettings } from '../loss-settings.ts'
import { wrongMetric } from '../metrics.ts'
import type { Row, TokenRow } from '../row.ts'
import { packed, readState, type TinkerState } from './checkpoint.ts'
import { askedDatum, CROSS_ENTROPY, datumOf, mapLoss, tokenRow, weightedDatum } from './loss-mapping.ts'
import { Remote } from './remote.ts'
import { checkedTinker, type TinkerOptions, type TinkerSettings } from './settings.ts'
import { TokenLoss } from './token-loss.ts'
import type { ForwardBackwardOutput } from './wire.ts'

/** Tinker's name of the gradient norm before clipping. */
const GRADIENT_NORM = 'unclipped_grad_l2:mean'
const LOSS_SUM = 'loss:sum'

/**
 * The gradient of an adapter that is stored and computed at Tinker. Nothing is sent before it is needed. Versions are paths at Tinker: see
 * checkpoint.ts.
 *
 * @example
 * const learner = gradientLearner(tinkerCore({ base: 'Qwen/Qwen3-4B-Instruct-2507', rank: 32 }), { loss: { name: 'clip' }, lr: 4e-5 })
 */
export function tinkerCore(options: TinkerOptions): TinkerCore {
  return new TinkerCore(checkedTinker(options))
}

export class TinkerCore implements GradientCore {
  readonly policy: string
  readonly #settings: TinkerSettings
  readonly #remote: Remote
  #steps = 0
  /** The path of the current weights; undefined if they were not saved. */
  #published: string | undefined
  /** The loss of the rows since the last step, computed here and reported by Tinker. */
  #loss = new TokenLoss()
  #reported = 0
  #wrong: string | undefined

  constructor(settings: TinkerSettings) {
    this.policy = settings.name
    this.#settings = settings
    this.#remote = new Remote(settings)
  }

  async forward(rows: readonly Row[], of: 'current' | 'reference'): Promise<{ logProbs: Float64Array[] }> {
    const tokens = rows.map(tokenRow)
    return { logProbs: await (of === 'current' ? this.#current(tokens) : this.#reference(tokens)) }
  }

  async forwardBackward(rows: readonly Row[], loss: LossSettings): Promise<Metrics> {
    const mapping = mapLoss(loss)
    const { rule } = mapping
    // Other rows do not contribute to the gradient, but would cost the same.
    const trained = rows.map(tokenRow).filter(({ mask, weight }) => mask.some((one, i) => one === 1 && weight[i]! > 0))
    let more: Metrics = {}
    if (trained.length > 0 && mapping.how === 'direct') {
      const data = trained.map((row) => datumOf(row, rule, mapping.call))
      const outputs = await this.#remote.change((model) => model.forwardBackward(data, mapping.call))
      this.#reported += sumOf(outputs)
      more = { reportedLoss: this.#reported }
      for (const [i, logProbs] of logProbsIn(outputs, trained).entries())
        this.#loss.byLogProb(trained[i]!, rule, logProbs)
    } else if (trained.length > 0 && mapping.how === 'derivative') {
      const logProbs = await this.#current(trained)
      const references = rule.kl > 0 ? await this.#reference(trained) : undefined
      const data = trained.map((row, i) => {
        const slopes = this.#loss.byLogProb(row, rule, logProbs[i]!, references?.[i])
        return weightedDatum(
          row,
          slopes.map((slope) => -slope),
        )
      })
      await this.#remote.change((model) => model.forwardBackward(data, CROSS_ENTROPY))
    }
    const metrics = { ...this.#loss.metrics(rule), ...more }
    this.#wrong = wrongMetric(metrics)
    return metrics
  }

  async optimStep({ lr, clipNorm = 0 }: { readonly lr: number; readonly clipNorm?: number }): Promise<Metrics> {
    if (this.#wrong !== undefined)
      throw new ManyworldsError('LEARNER_FAILED', `${this.#wrong}; the weights were not changed`)
    const { beta1, beta2, eps, weightDecay: weight_decay } = this.#settings.optimizer
    const adam = { learning_rate: lr, beta1, beta2, eps, weight_decay, grad_clip_norm: clipNorm }
    const metrics = await this.#remote.change((model) => model.optimStep(adam))
    this.#steps++
    this.#published = undefined
    this.#begin()
    const norm = metrics[GRADIENT_NORM]
    if (norm === undefined) return {}
    if (typeof norm !== 'number' || !Number.isFinite(norm))
      throw new ManyworldsError(
        'LEARNER_FAILED',
        `the gradient norm reported by Tinker is ${String(norm)}, not a finite number`,
      )
    return { gradientNorm: norm, gradientScale: clipScale(norm, clipNorm === 0 ? Infinity : clipNorm) }
  }

  async weights(): Promise<Uint8Array> {
    const { base, rank } = this.#settings
    return packed({ kind: 'tinker-weights', base, rank, path: await this.#publish() })
  }

  async state(): Promise<Uint8Array> {
    return packed(this.#remote.saved ?? (await this.#save()))
  }

  /** If nothing was open, an invalid state fails here; after a failure, with the next operation. */
  async load(bytes: Uint8Array): Promise<void> {
    const state = readState(bytes, this.#settings)
    this.#steps = state.steps
    this.#published = state.published
    this.#begin()
    await this.#remote.restore(state)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#remote.close()
  }

  #begin(): void {
    this.#loss = new TokenLoss()
    this.#reported = 0
    this.#wrong = undefined
  }

  async #save(): Promise<TinkerState> {
    const { base, rank, ttlSeconds } = this.#settings
    // First the one that others wait for. Both have the same weights, because nothing changes them in between.
    const published = await this.#publish()
    const path = await this.#remote.use((model) => model.save('save_weights', this.#name(), ttlSeconds))
    const state: TinkerState = { kind: 'tinker-state', base, rank, steps: this.#steps, path, published }
    this.#remote.isSavedAs(state)
    return state
  }

  async #publish(): Promise<string> {
    const { ttlSeconds } = this.#settings
    this.#published ??= await this.#remote.use((model) =>
      model.save('save_weights_for_sampler', this.#name(), ttlSeconds),
    )
    return this.#published
  }

  /** The name of the next checkpoint. */
  #name(): string {
    return `manyworlds-${String(this.#steps).padStart(6, '0')}`
  }

  async #current(rows: readonly TokenRow[]): Promise<Float64Array[]> {
    const data = rows.map(askedDatum)
    const outputs = await this.#remote.use((model) => model.forwardBackward(data, CROSS_ENTROPY, true))
    const logProbs = logProbsIn(outputs, rows)
    if (logProbs.length < rows.length)
      throw new ManyworldsError('LEARNER_FAILED', 'Tinker did not return log-probabilities, which this loss needs')
    return logProbs
  }

  async #reference(rows: readonly TokenRow[]): Promise<Float64Array[]> {
    return this.#remote.baseLogProbs(rows.map(({ ids }) => ids))
  }
}

const sumOf = (outputs: readonly ForwardBackwardOutput[]) =>
  outputs.reduce((sum, { metrics }) => sum + (metrics[LOSS_SUM] ?? 0), 0)

/** One number per token, with 0 for the first, which has none. Empty if the service does not return them. */
function logProbsIn(outputs: readonly ForwardBackwardOutput[], rows: readonly TokenRow[]): Float64Array[] {
  const found = outputs.flatMap((output) => output.outputs.logprobs ?? [])
  if (found.length === 0) return []
  const wrong = rows.findIndex(({ ids }, i) => found[i]?.length !== ids.length - 1)
  if (wrong !== -1 || found.length !== rows.length)
    throw new ManyworldsError(
      'LEARNER_FAILED',
      `Tinker returned log-probabilities that do not match the ${rows.length} sequences sent`,
    )
  return found.map((values) => {
    const all = new Float64Array(values.length + 1)
    all.set(values, 1)
    return all
  })
}
