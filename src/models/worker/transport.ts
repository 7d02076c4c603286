import { lastPackedSize, pack } from '../../protocol/pack.ts'
import { askingOf } from '../../worker/asking.ts'
import type { TaskContext } from '../../worker/context.ts'
import type { Asking, Requests } from '../../worker/requests.ts'
import { attemptOf, callModel, type PermitWanted } from '../calling.ts'
import type { Permit } from '../driver/limiter.ts'
import { type HttpReply, post } from '../http.ts'
import {
  DIRECT,
  MODEL,
  MODEL_OBJECT,
  MODELS,
  type ModelAnswer,
  type ModelAsked,
  type ObjectAnswer,
  type ObjectAsked,
  PERMIT,
  type PermitAsked,
  SETTLE,
  type SettleAsked,
} from '../protocol.ts'
import type { DirectDescription, ModelDescription, ModelDescriptions } from '../settings.ts'

/** Under this a context reaches models. A context inside another passes on that of the task. */
export const MODEL_CALLS: unique symbol = Symbol.for('manyworlds.model-calls')

/** Calls of models on behalf of one task. */
export interface ModelCalls {
  describe(): Promise<ModelDescriptions>
  call(description: ModelDescription, asked: ModelAsked, signal: AbortSignal | undefined): Promise<ModelAnswer>
  callObject(asked: ObjectAsked, signal: AbortSignal | undefined): Promise<ObjectAnswer>
}

export interface ModelSource {
  readonly [MODEL_CALLS]: ModelCalls
}

/** Profiles whose models are remembered: a run has one for each of its agents. A run of the same id may have other models later. */
const MOST_PROFILES = 64
const NO_LIMIT = Number.POSITIVE_INFINITY

/** How the tasks of this worker reach models: through the driver, or directly with its permit. */
export class ModelTransport {
  readonly #requests: Requests
  readonly #described = new Map<number, Promise<ModelDescriptions>>()
  /** Of each server, how many calls this worker has under way. */
  readonly #inFlight = new Map<string, number>()
  #permits = 0

  constructor(requests: Requests) {
    this.#requests = requests
  }

  of(task: TaskContext): ModelCalls {
    return {
      describe: () => this.#describe(task),
      call: (description, asked, signal) => this.#call(task, description, asked, signal),
      callObject: async (asked, signal) =>
        (await this.#requests.ask(task, asking(MODEL_OBJECT, asked, signal))) as ObjectAnswer,
    }
  }

  #describe(task: TaskContext): Promise<ModelDescriptions> {
    const { profile } = task
    let described = this.#described.get(profile)
    if (described === undefined) {
      described = this.#requests.ask(task, asking(MODELS, null, undefined)) as Promise<ModelDescriptions>
      this.#described.set(profile, described)
      // The task that asked has ended, perhaps; the next one asks again.
      described.catch(() => this.#described.delete(profile))
      if (this.#described.size > MOST_PROFILES) this.#described.delete(this.#described.keys().next().value!)
    }
    return described
  }

  async #call(
    task: TaskContext,
    { direct, permitMs }: ModelDescription,
    asked: ModelAsked,
    signal: AbortSignal | undefined,
  ): Promise<ModelAnswer> {
    if (direct === undefined)
      return (await this.#requests.ask(task, { ...asking(MODEL, asked, signal), standMs: permitMs })) as ModelAnswer
    const either = signal ? AbortSignal.any([task.signal, signal]) : task.signal
    const own: Asking = { ...asking(DIRECT, asked, signal), kind: 'own' }
    return (await this.#requests.once(task, own, async () => {
      const body = pack(await this.#callDirectly(task, direct, permitMs, asked, either))
      return { body, size: lastPackedSize(body) }
    })) as ModelAnswer
  }

  async #callDirectly(
    task: TaskContext,
    { urls, headers, timeoutMs, maxRetries }: DirectDescription,
    permitMs: number,
    { model, path, body, tokens }: ModelAsked,
    signal: AbortSignal,
  ): Promise<ModelAnswer> {
    const { answer, retries, ms } = await callModel({
      ...{ what: `model '${model}' (called by the worker at ${urls.join(', ')})`, apiKeyEnv: undefined },
      ...{ permitMs, maxRetries },
      permit: (wanted) => this.#permit(task, model, tokens, wanted, signal),
      attempt: () =>
        attemptOf(() => this.#use(urls, (url) => post({ url: url + path, headers, body, timeoutMs, signal }))),
    })
    return { body: answer.body, ms, retries, cached: false }
  }

  /** Calls the replica to which this worker has the fewest calls under way. */
  async #use(urls: readonly string[], call: (url: string) => Promise<HttpReply>): Promise<HttpReply> {
    const busy = (url: string) => this.#inFlight.get(url) ?? 0
    const url = urls.reduce((best, one) => (busy(one) < busy(best) ? one : best))
    this.#inFlight.set(url, busy(url) + 1)
    try {
      return await call(url)
    } finally {
      this.#inFlight.set(url, busy(url) - 1)
    }
  }

  async #permit(
    task: TaskContext,
    model: string,
    tokens: number,
    { waitMs, notBefore, first = false }: PermitWanted,
    signal: AbortSignal,
  ): Promise<Permit> {
    const permit = ++this.#permits
    const delayMs = notBefore === undefined ? 0 : Math.max(0, notBefore - performance.now())
    const asked: PermitAsked = { model, permit, tokens, waitMs, delayMs, first }
    // It stays open until the driver has heard how the call went: whatever ends the task gives the permit back.
    const parts = this.#requests.stream(task, {
      ...{ ...asking(PERMIT, asked, signal), kind: 'parts', unlimited: true, standMs: waitMs },
    })
    await parts.next()
    return {
      settle: (outcome) => {
        const settled: SettleAsked = { permit, outcome }
        void this.#requests.ask(task, { ...asking(SETTLE, settled, undefined), unlimited: true }).catch(() => {})
        // To its end, which the driver sends now.
        void parts.next().catch(() => {})
      },
    }
  }
}

const asking = (service: string, question: unknown, signal: AbortSignal | undefined): Asking =>
  askingOf(service, question, { clock: 'runs', limitMs: NO_LIMIT, ...(signal && { signal }) }, 'one')
