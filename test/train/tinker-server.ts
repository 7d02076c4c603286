import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { buffer } from 'node:stream/consumers'
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
import { readRequest, writeOutput, writeSamples } from './tinker-wire.ts'

/**
 * A server that answers as Tinker does, by the calls of its Python SDK 0.36.0, with the real mathematics of a tiny model. Operations
 * of a model are numbered: one that comes again is not done again, and a gap is refused, where the service would wait for ever.
 */

export const BASE = 'toy/bigram'
export const KEY = 'tml-scripted-0123456789'
export const END = VOCABULARY - 1

/** What happens to the next call of a path. `lost`: it is done, and the answer never arrives. `cut`: it is not done. */
export type Fault =
  | 'lost'
  | 'cut'
  | 'hang'
  | { readonly status: number; readonly body?: object; readonly headers?: Readonly<Record<string, string>> }

export interface TinkerServerOptions {
  /** Of every result, before it is there. Default 0. */
  readonly pendingPolls?: number
  /** For what `client/config` says. */
  readonly flags?: Readonly<Record<string, unknown>>
  /** Tokens instead of the key, each for so many seconds. */
  readonly tokenSeconds?: number
  /** Results without log-probabilities. */
  readonly keepsLogProbs?: boolean
}

interface Model {
  readonly session: string
  trained: Trained
  gradient: Float64Array
  readonly requests: Map<number, string>
}

interface Call {
  readonly path: string
  readonly body: Record<string, never> & Record<string, unknown>
  readonly headers: IncomingMessage['headers']
}

class Refused extends Error {
  readonly status: number
  constructor(status: number, message: string) {
    super(message)
    this.status = status
  }
}

export class TinkerServer {
  readonly calls: Call[] = []
  readonly models = new Map<string, Model>()
  readonly #options: TinkerServerOptions
  readonly #sessions = new Map<string, 'open' | 'ended'>()
  readonly #samplers = new Map<string, { session: string; trained: Trained; requests: Map<number, string> }>()
  readonly #saved = new Map<string, Trained>()
  readonly #futures = new Map<string, { polls: number; result: object | Uint8Array }>()
  readonly #faults = new Map<string, Fault[]>()
  readonly #tokens = new Map<string, number>()
  readonly #server = createServer((request, response) => void this.#serve(request, response))
  #count = 0

  private constructor(options: TinkerServerOptions) {
    this.#options = options
  }

  static async start(options: TinkerServerOptions = {}): Promise<TinkerServer> {
    const server = new TinkerServer(options)
    await once(server.#server.listen(0, '127.0.0.1'), 'listening')
    return server
  }

  get baseURL(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`
  }

  /** How often a path was called. */
  count(path: string): number {
    return this.calls.filter((call) => call.path === path).length
  }

  /** What the next calls of a path meet with. */
  fail(path: string, ...faults: readonly Fault[]): void {
    this.#faults.set(path, [...(this.#faults.get(path) ?? []), ...faults])
  }

  /** The model that was made last. */
  get last(): Model {
    return [...this.models.values()].at(-1)!
  }

  endSessions(): void {
    for (const id of this.#sessions.keys()) this.#sessions.set(id, 'ended')
  }

  forget(path: string): void {
    this.#saved.delete(path)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#server.closeAllConnections()
    this.#server.close()
    await once(this.#server, 'close')
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const bytes = await buffer(request)
    const path = request.url!.replace(/^\/api\/v1\//, '')
    const fault = this.#faults.get(path)?.shift()
    if (fault === 'hang') return
    if (fault === 'cut') return void request.socket.destroy()
    if (typeof fault === 'object') return answer(response, fault.body ?? null, fault.status, fault.headers)
    try {
      this.#checkKey(path, request.headers['x-api-key'])
      const isBytes = request.headers['content-type'] === 'application/x-protobuf'
      const body = isBytes ? { ...readRequest(bytes) } : (JSON.parse(bytes.toString() || '{}') as object)
      this.calls.push({ path, body: body as Call['body'], headers: request.headers })
      const result = this.#do(path, body as Call['body'])
      if (fault === 'lost') request.socket.destroy()
      else answer(response, result)
    } catch (error) {
      if (!(error instanceof Refused)) throw error
      answer(response, { detail: error.message }, error.status)
    }
  }

  #checkKey(path: string, given: unknown): void {
    const { tokenSeconds } = this.#options
    const isKey = given === KEY
    const until = this.#tokens.get(String(given)) ?? 0
    const wantsToken = tokenSeconds !== undefined && path !== 'client/config' && path !== 'auth/token'
    if (wantsToken ? until > Date.now() : isKey) return
    throw new Refused(401, `Invalid API key: ${String(given)}`)
  }

  #do(path: string, body: Call['body']): object | Uint8Array {
    switch (path) {
      case 'client/config':
        return { pjwt_auth_enabled: this.#options.tokenSeconds !== undefined, ...this.#options.flags }
      case 'client/dynamic_config':
        return {}
      case 'telemetry':
        return { status: 'accepted' }
      case 'auth/token':
        return { jwt: this.#token() }
      case 'create_session': {
        const id = `session-${++this.#count}`
        this.#sessions.set(id, 'open')
        return { type: 'create_session', session_id: id }
      }
      case 'session_heartbeat':
        this.#checkSession(body.session_id!)
        return { type: 'session_heartbeat' }
      case 'create_model':
        return this.#create(body)
      case 'load_weights':
        return body.model_id === undefined ? this.#createByLoad(body) : this.#operation(body, () => this.#load(body))
      case 'forward_backward':
        return this.#operation({ ...body, model_id: body.modelId!, seq_id: body.seqId! }, (model) =>
          this.#forwardBackward(model, body),
        )
      case 'optim_step':
        return this.#operation(body, (model) => {
          const norm = adamStep(model.trained, model.gradient, body.adam_params as unknown as AdamParams)
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
      case 'get_info':
        return { type: 'get_info', model_id: body.model_id, model_data: { model_name: BASE }, is_lora: true }
      case 'retrieve_future':
        return this.#retrieve(String(body.request_id))
      default:
        throw new Refused(404, `no such path: ${path}`)
    }
  }

  #token(): string {
    const until = Date.now() + 1000 * this.#options.tokenSeconds!
    const part = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url')
    const token = `${part({ alg: 'none' })}.${part({ exp: until / 1000, id: ++this.#count })}.scripted-signature`
    this.#tokens.set(token, until)
    return token
  }

  #checkSession(id: unknown): void {
    const state = this.#sessions.get(String(id))
    if (state === undefined) throw new Refused(404, `no session ${String(id)}`)
    if (state === 'ended') throw new Refused(410, `session ${String(id)} has finished`)
  }

  #future(result: object | Uint8Array, more: object = {}): object {
    const request_id = `request-${++this.#count}`
    this.#futures.set(request_id, { polls: this.#options.pendingPolls ?? 0, result })
    return { request_id, ...more }
  }

  #create(body: Call['body']): object {
    this.#checkSession(body.session_id)
    if (body.base_model !== BASE)
      return this.#future({ error: `base model '${String(body.base_model)}' is not supported`, category: 'user' })
    return this.#future({ type: 'create_model', model_id: this.#newModel(body, untrained()) })
  }

  #newModel({ session_id, model_seq_id }: Call['body'], trained: Trained): string {
    const id = `${String(session_id)}:train:${String(model_seq_id)}`
    const gradient = new Float64Array(trained.delta.length)
    this.models.set(id, { session: String(session_id), trained, gradient, requests: new Map() })
    return id
  }

  #createByLoad(body: Call['body']): object {
    this.#checkSession(body.session_id)
    const model_id = this.#newModel(body, this.#loaded(body))
    return this.#future({ type: 'load_weights', model_id, path: body.path })
  }

  #load(body: Call['body']): object {
    const model = this.models.get(String(body.model_id))!
    model.trained = this.#loaded(body)
    return { type: 'load_weights', path: body.path }
  }

  #loaded({ path, optimizer }: Call['body']): Trained {
    const saved = this.#saved.get(String(path))
    if (saved === undefined) throw new Refused(404, `no checkpoint ${String(path)}`)
    return optimizer ? copyOf(saved) : { ...untrained(), delta: saved.delta.slice() }
  }

  #operation(body: Call['body'], run: (model: Model) => object | Uint8Array): object {
    const model = this.models.get(String(body.model_id))
    if (model === undefined) throw new Refused(404, `no model ${String(body.model_id)}`)
    this.#checkSession(model.session)
    const seq = Number(body.seq_id)
    const known = model.requests.get(seq)
    if (known !== undefined) return { request_id: known }
    if (seq !== model.requests.size + 1)
      throw new Refused(422, `operation ${seq} after ${model.requests.size}: the service would wait for ever`)
    const future = this.#future(run(model)) as { request_id: string }
    model.requests.set(seq, future.request_id)
    return future
  }

  #forwardBackward(model: Model, body: Call['body']): object | Uint8Array {
    const { data, lossFn, config, configV2, forwardOnly } = body as unknown as ReturnType<typeof readRequest>
    if (!LOSS_FNS.includes(lossFn)) return { error: `no loss function '${lossFn}'`, category: 'user' }
    if (JSON.stringify(config) !== JSON.stringify(configV2)) return { error: 'two configurations', category: 'user' }
    const { loss, logProbs, gradient } = pass(model.trained, data, lossFn, config)
    if (!forwardOnly) for (let i = 0; i < gradient.length; i++) model.gradient[i] = model.gradient[i]! + gradient[i]!
    return writeOutput(this.#options.keepsLogProbs ? null : logProbs, loss, data.length)
  }

  #save(model: Model, kind: string, body: Call['body']): object {
    const id = [...this.models].find(([, one]) => one === model)![0]
    const folder = kind === 'save_weights' ? 'weights' : 'sampler_weights'
    const path = `tinker://${id}/${folder}/${String(body.path ?? 'ephemeral')}`
    if (this.#saved.has(path) && body.overwrite !== true) return { error: `${path} exists`, category: 'user' }
    this.#saved.set(path, copyOf(model.trained))
    return { type: kind, path }
  }

  #createSampler(body: Call['body']): object {
    this.#checkSession(body.session_id)
    const trained = body.model_path === undefined ? untrained() : this.#saved.get(String(body.model_path))
    if (trained === undefined) throw new Refused(404, `no weights ${String(body.model_path)}`)
    const id = `${String(body.session_id)}:sample:${String(body.sampling_session_seq_id)}`
    this.#samplers.set(id, { session: String(body.session_id), trained, requests: new Map() })
    return { type: 'create_sampling_session', sampling_session_id: id }
  }

  #sample(body: Call['body']): object {
    const sampler = this.#samplers.get(String(body.sampling_session_id))
    if (sampler === undefined) throw new Refused(404, `no sampler ${String(body.sampling_session_id)}`)
    this.#checkSession(sampler.session)
    const count = Number(body.num_samples)
    const sample_sequence_ids = Array.from({ length: count }, (_, i) => `sequence-${this.#count}-${i}`)
    const known = sampler.requests.get(Number(body.seq_id))
    if (known !== undefined) return { request_id: known, sample_sequence_ids }
    const { chunks } = body.prompt as unknown as { chunks: { tokens: number[] }[] }
    const prompt = chunks.flatMap(({ tokens }) => tokens)
    const { max_tokens, seed } = body.sampling_params as unknown as { max_tokens: number; seed?: number }
    const random = seeded(seed ?? ++this.#count)
    const { delta } = sampler.trained
    const samples = sample_sequence_ids.map(() => sampleOnce(delta, prompt, max_tokens, random))
    const scored = prompt.map((id, i) => (i === 0 ? Number.NaN : logProbsAfter(delta, prompt[0]!, prompt[i - 1]!)[id]!))
    const result = writeSamples(samples, body.prompt_logprobs === true ? scored : null)
    const future = this.#future(result, { sample_sequence_ids }) as { request_id: string }
    sampler.requests.set(Number(body.seq_id), future.request_id)
    return future
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

function answer(
  response: ServerResponse,
  result: object | Uint8Array | null,
  status = 200,
  headers: Readonly<Record<string, string>> = {},
): void {
  const type = result instanceof Uint8Array ? 'application/x-protobuf' : 'application/json'
  const body = result === null ? '' : result instanceof Uint8Array ? result : JSON.stringify(result)
  response.writeHead(status, { 'content-type': type, ...headers }).end(body)
}
