import { ManyworldsError } from '../../errors.ts'
import { TinkerCalls } from './calls.ts'
import { tinkerWeights } from './checkpoint.ts'
import { decoded, TinkerSession } from './session.ts'
import { checkedTinker, type TinkerOptions } from './settings.ts'
import { decodeSamples, type TinkerSample } from './wire.ts'

export interface TinkerSampleRequest {
  readonly prompt: ArrayLike<number>
  /** The maximum number of new tokens. */
  readonly maxTokens: number
  /** Default 1, the only temperature that a learner at Tinker can train on. */
  readonly temperature?: number
  /** The number of samples. Default 1. */
  readonly count?: number
  readonly seed?: number
  /** Stop strings or token ids. Default: the model's end-of-sequence token. */
  readonly stop?: string | readonly string[] | readonly number[]
}

/** Samples from one version of a model: exact token ids, with the log-probabilities they were sampled with. */
export interface TinkerSampler {
  sample(request: TinkerSampleRequest): Promise<TinkerSample[]>
  /** Log-probabilities of a sequence, one per token; NaN for the first, which has no context. */
  logProbs(ids: ArrayLike<number>): Promise<Float64Array>
  [Symbol.asyncDispose](): Promise<void>
}

/**
 * Samples from a version that a learner published, or from the base model.
 *
 * @example
 * const { bytes } = await learner.publish()
 * await using sampler = await tinkerSampler({ base: 'Qwen/Qwen3-4B-Instruct-2507' }, bytes)
 * const [{ ids, logProbs }] = await sampler.sample({ prompt, maxTokens: 200 })
 */
export async function tinkerSampler(options: TinkerOptions, weights: Uint8Array | null): Promise<TinkerSampler> {
  const settings = checkedTinker(options)
  const of = weights === null ? { base_model: settings.base } : { model_path: tinkerWeights(weights).path }
  const calls = new TinkerCalls(settings)
  try {
    const session = await TinkerSession.open(calls, settings.name)
    const sampling = await Sampling.open(session, of)
    return {
      sample: (request) => sampling.sample(request),
      logProbs: (ids) => sampling.logProbs(ids),
      [Symbol.asyncDispose]: async () => calls.close(),
    }
  } catch (error) {
    calls.close()
    throw error
  }
}

/** Sampling within a session that the caller owns. */
export class Sampling {
  readonly #session: TinkerSession
  readonly #id: string
  #seq = 0

  private constructor(session: TinkerSession, id: string) {
    this.#session = session
    this.#id = id
  }

  static async open(
    session: TinkerSession,
    of: { readonly model_path: string } | { readonly base_model: string },
  ): Promise<Sampling> {
    return new Sampling(session, await session.openSampler(of))
  }

  async sample(request: TinkerSampleRequest): Promise<TinkerSample[]> {
    const { prompt, maxTokens, temperature = 1, count = 1, seed, stop } = request
    const params = { max_tokens: maxTokens, temperature, ...(seed !== undefined && { seed }), ...(stop && { stop }) }
    const { sequences } = await this.#ask(prompt, count, params, false)
    return sequences
  }

  async logProbs(ids: ArrayLike<number>): Promise<Float64Array> {
    const { promptLogProbs } = await this.#ask(ids, 1, { max_tokens: 1, temperature: 1 }, true)
    if (promptLogProbs?.length === ids.length) return promptLogProbs
    const found = promptLogProbs?.length ?? 'no'
    throw new ManyworldsError('LEARNER_FAILED', `Tinker returned ${found} log-probabilities for ${ids.length} tokens`)
  }

  async #ask(prompt: ArrayLike<number>, count: number, params: object, wantsPrompt: boolean) {
    const body = {
      ...{ type: 'sample', sampling_session_id: this.#id, seq_id: this.#seq++, num_samples: count },
      prompt: { chunks: [{ type: 'encoded_text', tokens: Array.from(prompt) }] },
      sampling_params: { top_k: -1, top_p: 1, ...params },
      prompt_logprobs: wantsPrompt,
    }
    // Makes an overloaded service refuse immediately.
    const headers = { 'x-tinker-sampling-backpressure': '1' }
    const result = await this.#session.submit({ path: 'asample', body, headers }, 'protobuf')
    return decoded('asample', await result(), decodeSamples)
  }
}
