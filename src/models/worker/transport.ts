import { ManyworldsError } from '../../errors.ts'
import { lastPackedSize, pack } from '../../protocol/pack.ts'
import { askingOf } from '../../worker/asking.ts'
import type { TaskContext } from '../../worker/context.ts'
import type { Asking, Requests } from '../../worker/requests.ts'
import { attemptOf, callModel, type PermitWanted } from '../calling.ts'
import type { Permit } from '../driver/limiter.ts'
import { post } from '../http.ts'
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
import { Replicas } from '../replicas.ts'
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
const MOST_SERVERS = 64
const NO_LIMIT = Number.POSITIVE_INFINITY

/** How the tasks of this worker reach models: through the driver, or directly with its permit. */
export class ModelTransport {
  readonly #requests: Requests
  readonly #described = new Map<number, ModelDescriptions>()
  /** By their URLs. */
  readonly #replicas = new Map<string, Replicas>()
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

  /** Tasks that begin together each ask: a task may end before it is answered, and nobody else could wait for that. */
  async #describe(task: TaskContext): Promise<ModelDescriptions> {
    const { profile } = task
    const known = this.#described.get(profile)
    if (known !== undefined) return known
    const asked = this.#requests.ask(task, asking(MODELS, null, undefined)) as Promise<ModelDescriptions>
    const described = await asked.catch(noModels)
    this.#described.set(profile, described)
    if (this.#described.size > MOST_PROFILES) this.#described.delete(this.#described.keys().next().value!)
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
    return (await this.#requests.once(task, own, async (call) => {
      const body = pack(await this.#callDirectly(task, call, direct, permitMs, asked, either))
      return { body, size: lastPackedSize(body) }
    })) as ModelAnswer
  }

  async #callDirectly(
    task: TaskContext,
    call: number,
    { urls, headers, timeoutMs, maxRetries }: DirectDescription,
    permitMs: number,
    { model, path, body, tokens }: ModelAsked,
    signal: AbortSignal,
  ): Promise<ModelAnswer> {
    const replicas = this.#replicasOf(urls)
    const { answer, retries, ms } = await callModel({
      ...{ what: `model '${model}'`, where: `called by the worker at ${urls.join(', ')}`, apiKeyEnv: undefined },
      ...{ permitMs, maxRetries },
      permit: (wanted) => this.#permit(task, call, model, tokens, wanted, signal),
      attempt: () =>
        attemptOf(() => replicas.use((url) => post({ url: url + path, headers, body, timeoutMs, signal }))),
    })
    return { body: answer.body, ms, retries, cached: false }
  }

  /** What this worker knows of the servers of a model. */
  #replicasOf(urls: readonly string[]): Replicas {
    const name = urls.join('\n')
    let replicas = this.#replicas.get(name)
    if (replicas === undefined) this.#replicas.set(name, (replicas = new Replicas(urls)))
    if (this.#replicas.size > MOST_SERVERS) this.#replicas.delete(this.#replicas.keys().next().value!)
    return replicas
  }

  async #permit(
    task: TaskContext,
    call: number,
    model: string,
    tokens: number,
    { waitMs, notBefore, first = false }: PermitWanted,
    signal: AbortSignal,
  ): Promise<Permit> {
    const permit = ++this.#permits
    const delayMs = notBefore === undefined ? 0 : Math.max(0, notBefore - performance.now())
    const asked: PermitAsked = { model, permit, call, tokens, waitMs, delayMs, first }
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

/** A run without models has nobody who answers for them. */
function noModels(error: unknown): ModelDescriptions {
  if (ManyworldsError.is(error) && error.code === 'SERVICE_UNKNOWN') return {}
  throw error
}
