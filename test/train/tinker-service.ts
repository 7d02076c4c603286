import { seeded } from '../../dist/random.js'
import {
  type AdamParams,
  adamStep,
  copyOf,
  LOSS_FNS,
  logProbsAfter,
  pass,
  type Trained,
  untrained,
  VOCABULARY,
} from './tinker-model.ts'
import { type WireRequest, writeOutput, writeSamples } from './tinker-wire.ts'

export const BASE = 'toy/bigram'
/** The token that ends a sequence. */
export const END = VOCABULARY - 1

export interface ServiceOptions {
  /** Of every result, before it is there. Default 0. */
  readonly pendingPolls?: number
  /** Results without log-probabilities. */
  readonly keepsLogProbs?: boolean
}

export type Body = Readonly<Record<string, unknown>>

export class Refused extends Error {
  readonly status: number
  constructor(status: number, message: string) {
    super(message)
    this.status = status
  }
}

interface Model {
  readonly session: string
  readonly rank: unknown
  trained: Trained
  gradient: Float64Array
  readonly requests: Map<number, string>
}

interface Sampler {
  readonly session: string
  readonly trained: Trained
  readonly requests: Map<number, string>
}

/**
 * What the calls of Tinker do. Operations of a model are numbered: one that comes again is not done again, and a gap is refused, where the
 * service would wait for ever.
 */
export class TinkerService {
  readonly models = new Map<string, Model>()
  readonly #options: ServiceOptions
  readonly #sessions = new Map<string, 'open' | 'ended'>()
  readonly #samplers = new Map<string, Sampler>()
  readonly #saved = new Map<string, { trained: Trained; rank: unknown }>()
  readonly #futures = new Map<string, { polls: number; result: object | Uint8Array }>()
  #count = 0

  constructor(options: ServiceOptions) {
    this.#options = options
  }

  endSessions(): void {
    for (const id of this.#sessions.keys()) this.#sessions.set(id, 'ended')
  }

  forget(path: string): void {
    this.#saved.delete(path)
  }

  do(path: string, body: Body): object | Uint8Array {
    switch (path) {
      case 'create_session': {
        const id = `session-${++this.#count}`
        this.#sessions.set(id, 'open')
        return { type: path, session_id: id }
      }
      case 'session_heartbeat':
        this.#checkSession(body.session_id)
        return { type: path }
      case 'create_model':
        return this.#create(body)
      case 'weights_info':
        return { base_model: BASE, is_lora: true, lora_rank: this.#savedAt(body.tinker_path).rank }
      case 'load_weights':
        return body.model_id === undefined
          ? this.#createByLoad(body)
          : this.#operation(body, (model) => this.#load(model, body))
      case 'forward_backward': {
        const request = body as unknown as WireRequest
        return this.#operation({ model_id: request.modelId, seq_id: request.seqId }, (model) =>
          this.#forwardBackward(model, request),
        )
      }
      case 'optim_step':
        return this.#operation(body, (model) => {
          const norm = adamStep(model.trained, model.gradient, body.adam_params as AdamParams)
          model.gradient = new Float64Array(model.gradient.length)
          return { metrics: { 'unclipped_grad_l2:mean': norm } }
        })
      case 'save_weights':
      case 'save_weights_for_sampler':
        return this.#operation(body, (model) => this.#save(model, path, body))
      case 'create_sampling_session':
        return this.#createSampler(body)
      case 'asample':
        return this.#sample(body)
      case 'retrieve_future':
        return this.#retrieve(String(body.request_id))
      default:
        throw new Refused(404, `no such path: ${path}`)
    }
  }

  #checkSession(id: unknown): void {
    const state = this.#sessions.get(String(id))
    if (state === undefined) throw new Refused(404, `no session ${String(id)}`)
    if (state === 'ended') throw new Refused(410, `session ${String(id)} has finished`)
  }

  #future(result: object | Uint8Array): { request_id: string } {
    const request_id = `request-${++this.#count}`
    this.#futures.set(request_id, { polls: this.#options.pendingPolls ?? 0, result })
    return { request_id }
  }

  #create(body: Body): object {
    this.#checkSession(body.session_id)
    if (body.base_model !== BASE)
      return this.#future({ error: `base model '${String(body.base_model)}' is not supported`, category: 'user' })
    const { rank } = body.lora_config as { rank: number }
    return this.#future({ type: 'create_model', model_id: this.#newModel(body, untrained(), rank) })
  }

  #newModel({ session_id, model_seq_id }: Body, trained: Trained, rank: unknown): string {
    const id = `${String(session_id)}:train:${String(model_seq_id)}`
    const gradient = new Float64Array(trained.delta.length)
    this.models.set(id, { session: String(session_id), rank, trained, gradient, requests: new Map() })
    return id
  }

  #createByLoad(body: Body): object {
    this.#checkSession(body.session_id)
    const { trained, rank } = this.#savedAt(body.path)
    return this.#future({
      type: 'load_weights',
      model_id: this.#newModel(body, copyOf(trained), rank),
      path: body.path,
    })
  }

  #load(model: Model, { path, optimizer }: Body): object {
    const { trained } = this.#savedAt(path)
    model.trained = optimizer ? copyOf(trained) : { ...untrained(), delta: trained.delta.slice() }
    return { type: 'load_weights', path }
  }

  #savedAt(path: unknown): { trained: Trained; rank: unknown } {
    const saved = this.#saved.get(String(path))
    if (saved === undefined) throw new Refused(404, `no checkpoint ${String(path)}`)
    return saved
  }

  #operation(body: Body, run: (model: Model) => object | Uint8Array): object {
    const model = this.models.get(String(body.model_id))
    if (model === undefined) throw new Refused(404, `no model ${String(body.model_id)}`)
    this.#checkSession(model.session)
    const seq = Number(body.seq_id)
    const known = model.requests.get(seq)
    if (known !== undefined) return { request_id: known }
    if (seq !== model.requests.size + 1)
      throw new Refused(422, `operation ${seq} after ${model.requests.size}: the service would wait for ever`)
    const future = this.#future(run(model))
    model.requests.set(seq, future.request_id)
    return future
  }

  #forwardBackward(model: Model, { data, lossFn, config, configV2, forwardOnly }: WireRequest): object | Uint8Array {
    if (!LOSS_FNS.includes(lossFn)) return { error: `no loss function '${lossFn}'`, category: 'user' }
    if (sorted(config) !== sorted(configV2)) return { error: 'two configurations that differ', category: 'user' }
    const { loss, logProbs, gradient } = pass(model.trained, data, lossFn, config)
    if (!forwardOnly) for (let i = 0; i < gradient.length; i++) model.gradient[i] = model.gradient[i]! + gradient[i]!
    return writeOutput(this.#options.keepsLogProbs ? null : logProbs, loss, data.length)
  }

  #save(model: Model, kind: string, body: Body): object {
    const id = [...this.models].find(([, one]) => one === model)![0]
    const folder = kind === 'save_weights' ? 'weights' : 'sampler_weights'
    const path = `tinker://${id}/${folder}/${String(body.path)}`
    if (this.#saved.has(path) && body.overwrite !== true) return { error: `${path} exists`, category: 'user' }
    this.#saved.set(path, { trained: copyOf(model.trained), rank: model.rank })
    return { type: kind, path }
  }

  #createSampler(body: Body): object {
    this.#checkSession(body.session_id)
    const trained = body.model_path === undefined ? untrained() : this.#savedAt(body.model_path).trained
    const id = `${String(body.session_id)}:sample:${String(body.sampling_session_seq_id)}`
    this.#samplers.set(id, { session: String(body.session_id), trained, requests: new Map() })
    return { type: 'create_sampling_session', sampling_session_id: id }
  }

  #sample(body: Body): object {
    const sampler = this.#samplers.get(String(body.sampling_session_id))
    if (sampler === undefined) throw new Refused(404, `no sampler ${String(body.sampling_session_id)}`)
    this.#checkSession(sampler.session)
    const seq = Number(body.seq_id)
    const sample_sequence_ids = Array.from({ length: Number(body.num_samples) }, (_, i) => `sequence-${seq}-${i}`)
    const known = sampler.requests.get(seq)
    if (known !== undefined) return { request_id: known, sample_sequence_ids }
    const { chunks } = body.prompt as { chunks: { tokens: number[] }[] }
    const prompt = chunks.flatMap(({ tokens }) => tokens)
    const { max_tokens, seed } = body.sampling_params as { max_tokens: number; seed?: number }
    const random = seeded(seed ?? ++this.#count)
    const { delta } = sampler.trained
    const samples = sample_sequence_ids.map(() => sampleOnce(delta, prompt, max_tokens, random))
    const scored = prompt.map((id, i) => (i === 0 ? Number.NaN : logProbsAfter(delta, prompt[0]!, prompt[i - 1]!)[id]!))
    const future = this.#future(writeSamples(samples, body.prompt_logprobs === true ? scored : null))
    sampler.requests.set(seq, future.request_id)
    return { ...future, sample_sequence_ids }
  }

  #retrieve(id: string): object | Uint8Array {
    const future = this.#futures.get(id)
    if (future === undefined) throw new Refused(404, `no request ${id}`)
    if (future.polls === 0) return future.result
    future.polls--
    // The service has two ways to say it.
    if (future.polls % 2 === 1) throw new Refused(408, 'not yet')
    return { type: 'try_again', request_id: id, queue_state: 'paused_capacity', queue_state_reason: 'all busy' }
  }
}

const sorted = (config: Readonly<Record<string, number>>) => JSON.stringify(Object.entries(config).sort())

function sampleOnce(delta: Float64Array, prompt: readonly number[], most: number, random: () => number) {
  const [ids, logProbs]: [number[], number[]] = [[], []]
  while (ids.length < most && ids.at(-1) !== END) {
    const all = logProbsAfter(delta, prompt[0]!, ids.at(-1) ?? prompt.at(-1)!)
    let [left, id] = [random(), 0]
    while (id < VOCABULARY - 1 && (left -= Math.exp(all[id]!)) >= 0) id++
    ids.push(id)
    logProbs.push(all[id]!)
  }
  return { ids, logProbs, isCut: ids.at(-1) !== END }
}
