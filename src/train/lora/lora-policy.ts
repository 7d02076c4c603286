import type { Policy, PolicyRef, PolicyServer } from '../../agents/policy.ts'
import { ManyworldsError } from '../../errors.ts'
import { checkKeys } from '../check-keys.ts'
import type { ServedElsewhere } from './served/servers.ts'
import { checkedLora, LORA_KEYS, type LoraOptions, type LoraSettings } from './settings.ts'

/** A language model with a LoRA adapter, which is what learns. */
export interface LoraPolicy extends Policy {
  readonly core: 'lora'
  readonly model: string
  /** What its versions depend on; stored with a training. */
  readonly settings: Omit<LoraSettings, 'name' | 'device' | 'threads' | 'packed' | 'download' | 'cache'>
}

export interface LoraPolicyOptions extends LoraOptions {
  /**
   * Who samples. `'sidecar'`: a Python process beside the training, for small models. `vllm()` or `sglang()`: a server of yours,
   * which gets each version as an adapter. Default `'sidecar'`.
   */
  readonly serve?: 'sidecar' | ServedElsewhere
}

/** What the server of the training is called in a `PolicyRef`. It alone takes the token ids of earlier turns as they were. */
const SIDECAR = 'sidecar'

/** Small steps, and a pull towards the base model: language models are easily spoiled for everything else. */
const LR = 5e-5
const KL = 0.02
const CLIP_NORM = 1
/** Rows of a group should come together: they share the tokens they begin with. */
const MICRO_BATCH_ROWS = 64

/**
 * A policy for `llmAgent` that is a language model: a training makes its LoRA adapter better, and has each version served.
 * `manyworlds setup lora` installs what learning needs.
 *
 * @example
 * const solver = llmAgent({ name: 'solver', policy: lora({ base: './SmolLM2-135M-Instruct' }), grade: numeric() })
 * const pipeline = new DistributedTrainingPipeline({ agent: solver, tasks })
 */
export function lora(given: LoraPolicyOptions): LoraPolicy {
  checkKeys(given, [...LORA_KEYS, 'serve'], 'the options of lora()')
  const { serve = SIDECAR, ...options } = given
  const { name, base, lora, optimizer, dtype, seed } = checkedLora(options)
  if (serve !== SIDECAR && typeof serve?.dialect?.model !== 'function')
    throw new ManyworldsError('POLICY_INVALID', "LoRA: `serve` must be 'sidecar', or what vllm() or sglang() returned")
  return {
    ...{ core: 'lora', name, model: name, settings: { base, lora, optimizer, dtype, seed } },
    open: ({ at }: PolicyRef) => {
      const carries = at !== null && 'served' in at && at.served === SIDECAR
      return { model: () => ({ name, carries }) }
    },
    learning: {
      core: async () => (await import('./lora-core.ts')).loraCore(options),
      lr: LR,
      defaults: { loss: { name: 'clip', kl: KL }, clipNorm: CLIP_NORM, microBatch: MICRO_BATCH_ROWS },
    },
    serving: { start: (notice) => (serve === SIDECAR ? startSidecar(options, notice) : elsewhere(serve, options)) },
  }
}

async function elsewhere({ options, dialect }: ServedElsewhere, { base }: LoraOptions): Promise<PolicyServer> {
  const { AdapterServer } = await import('./served/adapter-server.ts')
  return new AdapterServer(options, dialect, typeof base === 'string' ? base : undefined)
}

async function startSidecar(options: LoraOptions, notice: (line: string) => void): Promise<PolicyServer> {
  const [{ startSampler }, { adapterName }] = await Promise.all([
    import('./serve/start-sampler.ts'),
    import('./served/adapter-server.ts'),
  ])
  const sampler = await startSampler(options, { notice })
  return {
    load: async ({ ref, bytes }) => {
      const model = adapterName(ref)
      await sampler.load(model, bytes)
      return {
        at: { served: SIDECAR, model },
        settings: {
          ...{ baseURL: sampler.baseURL, model, tokens: 'processed', via: 'driver' },
          headers: { authorization: `Bearer ${sampler.apiKey}` },
          // It takes what comes, in batches as large as there are calls.
          ...{ requestsPerMinute: 1_000_000_000, maxConcurrent: 100_000 },
        },
      }
    },
    unload: ({ at }) => sampler.unload(at.model),
    close: () => sampler.close(),
  }
}
