import type { GradientCore, Metrics } from '../learner.ts'
import { type LossSettings, lossRule } from '../loss-settings.ts'
import type { Row } from '../row.ts'
import { perRow, rowParts } from './row-parts.ts'
import { checkedLora, type LoraOptions, type LoraSettings } from './settings.ts'
import { type Computing, Sidecar } from './sidecar.ts'

export interface LoraCoreOptions {
  /**
   * The version to start with; default: the base model. The reference of the KL divergence is always the base model.
   */
  readonly from?: Uint8Array
  /** Receives messages about slow steps, such as creating the Python environment. */
  readonly notice?: (line: string) => void
  /** Starts the Python process; for tests. */
  readonly start?: () => Promise<Computing>
}

/** The sidecar's description of the model it opened. */
export interface OpenedModel {
  readonly device: string
  readonly trainable: number
  readonly parameters: number
  readonly vocabulary: number
  readonly packed: boolean
}

/**
 * The gradient of a LoRA adapter of a language model, computed in a separate Python process. The process is started when first needed, and exits with the
 * learner. If it dies, the pending call fails; `load` starts another one.
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

  /** True if the process died: unsaved changes are lost, and `load` restarts it. */
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

  /** The accumulated gradient, by weight name; for tests. */
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
          `rows cannot be packed with the base model of policy '${this.policy}', so they are computed one by one, which is slower`,
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
