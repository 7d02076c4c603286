import type { Policy, PolicyRef, PolicyServer } from '../../agents/policy.ts'
import { ManyworldsError } from '../../errors.ts'
import { checkKeys } from '../check-keys.ts'
import type { ServedElsewhere } from './served/servers.ts'
import { checkedLora, LORA_KEYS, type LoraOptions, type LoraSettings } from './settings.ts'

/** A language model with a LoRA adapter, which is trained. */
export interface LoraPolicy extends Policy {
  readonly core: 'lora'
  readonly model: string
  /** The settings that its versions depend on; stored with a training. */
  readonly settings: Omit<LoraSettings, 'name' | 'device' | 'threads' | 'packed' | 'download' | 'cache'>
}

export interface LoraPolicyOptions extends LoraOptions {
  /**
   * The server that samples. `'sidecar'`: a Python process beside the training, for small models. `vllm()` or
   * `sglang()`: your own server, which loads each version as an adapter. Default `'sidecar'`.
   */
  readonly serve?: 'sidecar' | ServedElsewhere
}

/** The name of the sidecar in a `PolicyRef`. Only the sidecar accepts the exact token ids of earlier turns. */
const SIDECAR = 'sidecar'

/**
 * A small learning rate and a KL penalty towards the base model, because training easily harms a language model's other
 * abilities.
 */
const LR = 5e-5
const KL = 0.02
const CLIP_NORM = 1
/**
 * How far sampler and learner may differ, in nats per token. In float32 the same program computes batches of other
 * shapes. In 16 bits, or with another program, single tokens differ by a third.
 */
const SAMPLER_KL = { exact: 1e-4, rounded: 0.05 }
/** Rows of a group should be in the same micro-batch, because they share a prefix. */
const MICRO_BATCH_ROWS = 64

/**
 * A language-model policy for `llmAgent`: a training improves its LoRA adapter and serves each version.
 * `manyworlds setup lora` installs what training needs.
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
    throw new ManyworldsError('POLICY_INVALID', "LoRA: `serve` must be 'sidecar', or the result of vllm() or sglang()")
  // The ratio of the loss would otherwise measure the difference of the two programs, and clip rare tokens because of it.
  const isExact = serve === SIDECAR && dtype === 'float32'
  return {
    ...{ core: 'lora', name, model: name, settings: { base, lora, optimizer, dtype, seed } },
    open: ({ at }: PolicyRef) => {
      const carries = at !== null && 'served' in at && at.served === SIDECAR
      return { model: () => ({ name, carries }) }
    },
    learning: {
      core: async (host) =>
        (await import('./lora-core.ts')).loraCore(options, { ...(host && { notice: (line) => host.notice(line) }) }),
      lr: LR,
      samplerKl: isExact ? SAMPLER_KL.exact : SAMPLER_KL.rounded,
      defaults: {
        ...{ loss: { name: 'clip', kl: KL }, clipNorm: CLIP_NORM, microBatch: MICRO_BATCH_ROWS },
        ...(!isExact && { proximal: 'learner' }),
      },
    },
    serving: { start: (notice) => (serve === SIDECAR ? startSidecar(options, notice) : connectServer(serve, options)) },
  }
}

async function connectServer({ options, dialect }: ServedElsewhere, { base }: LoraOptions): Promise<PolicyServer> {
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
          // No rate limit: the sidecar batches all calls it receives.
          ...{ requestsPerMinute: 1_000_000_000, maxConcurrent: 100_000 },
        },
      }
    },
    unload: ({ at }) => sampler.unload(at.model),
    close: () => sampler.close(),
  }
}
