import { TinkerRefusal } from './call-errors.ts'
import type { TinkerCall, TinkerResult } from './calls.ts'
import { decoded, objectIn, type TinkerSession, text } from './session.ts'
import type { TinkerSettings } from './settings.ts'
import { type Datum, decodeOutput, encodeRequest, type ForwardBackwardOutput, sizeOf } from './wire.ts'

/** A loss, by Tinker's name. */
export interface LossCall {
  readonly lossFn: string
  readonly config?: Readonly<Record<string, number>>
}

/** An operation whose outcome is unknown. */
interface UnknownOutcome {
  readonly key: string
  readonly resend: () => Promise<TinkerResult>
}

/**
 * An adapter in training at Tinker. Its operations are numbered and executed in order, each number once. So an
 * operation that is sent again because its answer was lost is not executed twice; and an operation that may not have
 * arrived is sent again before any other.
 */
export class TinkerModel {
  readonly #session: TinkerSession
  readonly #id: string
  #seq: number
  #unknown: UnknownOutcome | undefined

  private constructor(session: TinkerSession, id: string, seq: number) {
    this.#session = session
    this.#id = id
    this.#seq = seq
  }

  /** Creates an untrained adapter. */
  static async create(session: TinkerSession, settings: TinkerSettings): Promise<TinkerModel> {
    const { base, rank, seed, layers } = settings
    const { attention: train_attn, mlp: train_mlp, unembedding: train_unembed } = layers
    const body = {
      ...{ type: 'create_model', session_id: session.id, model_seq_id: session.nextModel(), base_model: base },
      lora_config: { rank, seed, train_unembed, train_mlp, train_attn },
      optimizer_config: { type: 'adamw' },
      user_metadata: { policy: settings.name },
    }
    const { model_id } = await session.run({ path: 'create_model', body })
    return new TinkerModel(session, text('create_model', 'model_id', model_id), 0)
  }

  /** Creates an adapter from a checkpoint, with its optimizer. */
  static async from(session: TinkerSession, settings: TinkerSettings, path: string): Promise<TinkerModel> {
    const load = { type: 'load_weights', path, optimizer: true }
    if (session.config.createsByLoad) {
      const model_seq_id = session.nextModel()
      const body = { ...load, session_id: session.id, model_seq_id }
      const { model_id } = await session.run({ path: 'load_weights', body })
      // The service derives the id from these two, and may omit it.
      return new TinkerModel(
        session,
        typeof model_id === 'string' ? model_id : `${session.id}:train:${model_seq_id}`,
        0,
      )
    }
    const model = await TinkerModel.create(session, settings)
    await model.#run({ path: 'load_weights', body: load })
    return model
  }

  /**
   * Accumulates the gradient, unless `forwardOnly`. Large batches are sent in parts, which does not change the result,
   * because losses are sums.
   */
  async forwardBackward(
    data: readonly Datum[],
    { lossFn, config = {} }: LossCall,
    forwardOnly = false,
  ): Promise<ForwardBackwardOutput[]> {
    await this.#settle()
    const results: (() => Promise<TinkerResult>)[] = []
    for (const part of parts(data, this.#session.config)) {
      const request = { modelId: this.#id, data: part, lossFn, config, forwardOnly }
      // All parts are sent before waiting for the first result, so that the service can batch them.
      const call = (seqId: number) => ({ path: 'forward_backward', body: encodeRequest({ ...request, seqId }) })
      results.push(await this.#submit(call, 'protobuf'))
    }
    const outputs: ForwardBackwardOutput[] = []
    for (const result of results) outputs.push(decoded('forward_backward', await result(), decodeOutput))
    return outputs
  }

  /** Resolves to Tinker's metrics of the step. */
  async optimStep(adam: object): Promise<Readonly<Record<string, unknown>>> {
    const { metrics } = await this.#run({ path: 'optim_step', body: { type: 'optim_step', adam_params: adam } })
    return (metrics ?? {}) as Readonly<Record<string, unknown>>
  }

  /** Saves the weights, with the optimizer or for sampling. Resolves to their path: `tinker://…`. */
  async save(kind: 'save_weights' | 'save_weights_for_sampler', name: string, ttlSeconds?: number): Promise<string> {
    const more = {
      ...(ttlSeconds !== undefined && { ttl_seconds: ttlSeconds }),
      // An existing checkpoint of this name has the same weights.
      ...(kind === 'save_weights' && { overwrite: true }),
    }
    const { path } = await this.#run({ path: kind, body: { type: kind, path: name, ...more } })
    return text(kind, 'path', path)
  }

  async #run({ path, body }: { path: string; body: object }): Promise<Readonly<Record<string, unknown>>> {
    const key = `${path} ${JSON.stringify(body)}`
    const before = await this.#settle()
    const call = (seq_id: number) => ({ path, body: { ...body, model_id: this.#id, seq_id } })
    return objectIn(path, before?.key === key ? before.result : await (await this.#submit(call, 'json', key))())
  }

  /** Finds the outcome of an operation whose answer was lost. */
  async #settle(): Promise<{ key: string; result: TinkerResult } | undefined> {
    const unknown = this.#unknown
    if (unknown === undefined) return undefined
    try {
      const result = await unknown.resend()
      this.#unknown = undefined
      return { key: unknown.key, result }
    } catch (error) {
      if (!(error instanceof TinkerRefusal)) throw error
      this.#unknown = undefined
      return undefined
    }
  }

  async #submit(
    make: (seq: number) => TinkerCall,
    wants: 'json' | 'protobuf',
    key = '',
  ): Promise<() => Promise<TinkerResult>> {
    const call = make(this.#seq + 1)
    const remember = (error: unknown) => {
      // It was not executed and never will be: the model is unchanged.
      if (error instanceof TinkerRefusal) throw error
      this.#unknown ??= { key, resend: async () => (await this.#session.submit(call, wants))() }
      throw error
    }
    const result = await this.#session.submit(call, wants).catch((error: unknown) => {
      // A number that may have been used is never reused for another operation.
      if (!(error instanceof TinkerRefusal)) this.#seq++
      return remember(error)
    })
    this.#seq++
    return () => result().catch(remember)
  }
}

function* parts(
  data: readonly Datum[],
  { maxData, maxBytes }: { readonly maxData: number; readonly maxBytes: number },
): Generator<Datum[]> {
  let [part, bytes]: [Datum[], number] = [[], 0]
  for (const datum of data) {
    const size = sizeOf(datum)
    if (part.length > 0 && (part.length >= maxData || bytes + size > maxBytes)) {
      yield part
      ;[part, bytes] = [[], 0]
    }
    part.push(datum)
    bytes += size
  }
  if (part.length > 0) yield part
}
