import type { GradientCore, Metrics } from '../learner.ts'
import { type LossSettings, lossRule } from '../loss-settings.ts'
import type { Row } from '../row.ts'
import { perRow, rowParts } from './row-parts.ts'
import { checkedLora, type LoraOptions, type LoraSettings } from './settings.ts'
import { type Computing, Sidecar } from './sidecar.ts'

export interface LoraCoreOptions {
  /** The version to begin with; left out: the base model. The reference of the KL divergence is always the base model. */
  readonly from?: Uint8Array
  /** Told what takes long, such as making the Python environment. */
  readonly notice?: (line: string) => void
  /** Starts the Python process; for tests. */
  readonly start?: () => Promise<Computing>
}

/** What the sidecar says of the model that it has opened. */
export interface OpenedModel {
  readonly device: string
  readonly trainable: number
  readonly parameters: number
  readonly vocabulary: number
  readonly packed: boolean
}

/**
 * The gradient of a LoRA adapter of a language model, computed in a Python process of its own. That is started when it is first needed,
 * and ends with the learner. If it dies, the call that was open fails; `load` starts another one.
 *
 * @example
 * const core = loraCore({ base: './SmolLM2-135M-Instruct', rank: 16 })
 * const learner = gradientLearner(core, { loss: { name: 'clip', kl: 0.02 }, lr: 5e-5, clipNorm: 1 })
 */
export function loraCore(options: LoraOptions, more: LoraCoreOptions = {}): LoraCore {
  return new LoraCore(checkedLora(options), more)
}

export class LoraCore implements GradientCore {
  readonly policy: string
  readonly #settings: LoraSettings
  readonly #options: LoraCoreOptions
  #sidecar: Promise<Computing> | undefined
  #running: Computing | undefined

  constructor(settings: LoraSettings, options: LoraCoreOptions) {
    this.policy = settings.name
    this.#settings = settings
    this.#options = options
  }

  /** Its process died: what was not saved is lost, and `load` brings it back. */
  get ended(): boolean {
    return this.#running?.ended ?? false
  }

  async forward(rows: readonly Row[], of: 'current' | 'reference') {
    const { parts } = await this.#call('forward', { of }, rowParts(rows, this.policy))
    return { logProbs: perRow(parts[0]!, rows) }
  }

  async forwardBackward(rows: readonly Row[], loss: LossSettings): Promise<Metrics> {
    const rule = lossRule(loss)
    return (await this.#call<Metrics>('forwardBackward', { rule }, rowParts(rows, this.policy))).result
  }

  async optimStep(options: { readonly lr: number; readonly clipNorm?: number }): Promise<Metrics> {
    return (await this.#call<Metrics>('optimStep', options)).result
  }

  /** A PEFT adapter as one safetensors file, with its `adapter_config` in the metadata. */
  async weights(): Promise<Uint8Array> {
    return (await this.#call('weights')).parts[0]!
  }

  async state(): Promise<Uint8Array> {
    return (await this.#call('state')).parts[0]!
  }

  async load(state: Uint8Array): Promise<void> {
    if (this.ended) this.#sidecar = this.#running = undefined
    await this.#call('load', {}, [state])
  }

  /** What was added since the last step, by name of the weights; for tests. */
  async gradient(): Promise<ReadonlyMap<string, Float64Array>> {
    const { result, parts } = await this.#call<{ names: readonly string[] }>('gradient')
    return new Map(result.names.map((name, at) => [name, new Float64Array(parts[at]!.buffer)]))
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const opening = this.#sidecar
    this.#sidecar = this.#running = undefined
    await (await opening?.catch(() => undefined))?.close()
  }

  async #call<Result>(op: string, args?: unknown, parts?: readonly Uint8Array[]) {
    this.#sidecar ??= this.#open().catch((error) => {
      this.#sidecar = undefined
      throw error
    })
    return (await this.#sidecar).call<Result>(op, args, parts)
  }

  async #open(): Promise<Computing> {
    const { from, notice, start = () => Sidecar.start({ ...(notice && { notice }) }) } = this.#options
    const sidecar = await start()
    try {
      const { name: _, ...settings } = this.#settings
      const { result } = await sidecar.call<OpenedModel>('open', { ...settings, role: 'train' })
      if (this.#settings.packed && !result.packed)
        notice?.(
          `the base model of policy '${this.policy}' cannot be packed: rows are computed one by one, which is slower`,
        )
      if (from) await sidecar.call('loadWeights', {}, [from])
    } catch (error) {
      await sidecar.close()
      throw error
    }
    this.#running = sidecar
    return sidecar
  }
}
