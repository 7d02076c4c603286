import { ManyworldsError } from '../../errors.ts'
import { lastPackedSize, pack } from '../../protocol/pack.ts'
import { askingOf } from '../../worker/asking.ts'
import type { TaskContext } from '../../worker/context.ts'
import type { Asking, Requests } from '../../worker/requests.ts'
import { callURL, publicURL } from '../address.ts'
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
  type ModelNote,
  NOTE,
  type ObjectAnswer,
  type ObjectAsked,
  PERMIT,
  type PermitAsked,
  SETTLE,
  type SettleAsked,
} from '../protocol.ts'
import { Replicas } from '../replicas.ts'
import type { DirectDescription, ModelDescription, ModelDescriptions } from '../settings.ts'

/** The key under which a context has its model calls. A nested context passes on those of the task. */
export const MODEL_CALLS: unique symbol = Symbol.for('manyworlds.model-calls')

/** Model calls on behalf of one task. */
export interface ModelCalls {
  describe(): Promise<ModelDescriptions>
  call(description: ModelDescription, asked: ModelAsked, signal: AbortSignal | undefined): Promise<ModelAnswer>
  callObject(asked: ObjectAsked, signal: AbortSignal | undefined): Promise<ObjectAnswer>
  /** The schema of a call is sent without `strict`, for this reason. */
  notStrict(model: string, why: string): void
  /** A call begins, with the signal of its options; the returned function must be called at its end. */
  begin(model: string, signal: AbortSignal | undefined): () => void
}

export interface ModelSource {
  readonly [MODEL_CALLS]: ModelCalls
}

/**
 * How many profiles' models are cached: a run has one profile per agent. A later run with the same id may have other
 * models.
 */
const MAX_PROFILES = 64
const MAX_SERVERS = 64
const NO_LIMIT = Number.POSITIVE_INFINITY

/** How the tasks of this worker call models: through the driver, or directly with a permit from the driver. */
export class ModelTransport {
  readonly #requests: Requests
  readonly #described = new Map<number, ModelDescriptions>()
  /** By URLs. */
  readonly #replicas = new Map<string, Replicas>()
  readonly #noted = new Set<string>()
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
      notStrict: (model, why) => this.#note(task, { kind: 'not-strict', model, why }),
      begin: (model, signal) => begin(task, model, signal),
    }
  }

  /**
   * Concurrent tasks each ask for themselves, because a task may end before it is answered, and others must not depend
   * on it.
   */
  async #describe(task: TaskContext): Promise<ModelDescriptions> {
    const { profile } = task
    const known = this.#described.get(profile)
    if (known !== undefined) return known
    const asked = this.#requests.ask(task, asking(MODELS, null, undefined)) as Promise<ModelDescriptions>
    const described = await asked.catch(noModels)
    this.#described.set(profile, described)
    if (this.#described.size > MAX_PROFILES) this.#described.delete(this.#described.keys().next().value!)
    return described
  }

  /**
   * A task ends by itself. Calls that it has not awaited end with it; its log says so, and the user hears of it once. A call
   * that was aborted by its own signal, as when an `llmAgent` reaches its `timeoutMs`, need not be awaited.
   */
  leave(task: TaskContext, succeeded: boolean): void {
    const left = task.modelCalls!.filter(({ signal }) => !signal?.aborted)
    for (const model of new Set(left.map(({ model }) => model))) {
      task.print(`a call of model '${model}' was aborted, because the task ended without awaiting it`)
      // A task that fails often leaves calls behind, as `Promise.all` does.
      if (succeeded) this.#note(task, { kind: 'not-awaited', model })
    }
  }

  /** Said once per profile, model and reason, so that the driver is not asked for every call. */
  #note(task: TaskContext, note: ModelNote): void {
    const key = JSON.stringify([task.profile, note.kind, note.model, note.why])
    if (this.#noted.has(key)) return
    this.#noted.add(key)
    if (this.#noted.size > MAX_PROFILES) this.#noted.clear()
    void this.#requests.ask(task, { ...asking(NOTE, note, undefined), unlimited: true }).catch(() => {})
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
    { urls, headers, timeoutMs, maxRetries, apiKeyEnv }: DirectDescription,
    permitMs: number,
    { model, path, body, tokens, mayLoad = false }: ModelAsked,
    signal: AbortSignal,
  ): Promise<ModelAnswer> {
    const replicas = this.#replicasOf(urls)
    const { answer, retries, ms } = await callModel({
      ...{
        what: `model '${model}'`,
        where: `called by the worker at ${urls.map(publicURL).join(', ')}`,
        apiKeyEnv,
      },
      ...{ permitMs, maxRetries, hasBreaker: true, mayLoad },
      permit: (wanted) => this.#permit(task, call, model, tokens, wanted, signal),
      attempt: () =>
        attemptOf(() => replicas.use((url) => post({ url: callURL(url, path), headers, body, timeoutMs, signal }))),
    })
    return { body: answer.body, ms, retries, cached: false }
  }

  /** The state of a model's servers, as seen by this worker. */
  #replicasOf(urls: readonly string[]): Replicas {
    const name = urls.join('\n')
    let replicas = this.#replicas.get(name)
    if (replicas === undefined) this.#replicas.set(name, (replicas = new Replicas(urls)))
    if (this.#replicas.size > MAX_SERVERS) this.#replicas.delete(this.#replicas.keys().next().value!)
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
    // The request stays open until the driver knows the outcome, so the permit is released when the task ends.
    const parts = this.#requests.stream(task, {
      ...{ ...asking(PERMIT, asked, signal), kind: 'parts', unlimited: true, standMs: waitMs },
    })
    await parts.next()
    return {
      settle: (outcome) => {
        const settled: SettleAsked = { permit, outcome }
        void this.#requests.ask(task, { ...asking(SETTLE, settled, undefined), unlimited: true }).catch(() => {})
        // Reads to the end, which the driver sends now.
        void parts.next().catch(() => {})
      },
    }
  }
}

function begin(task: TaskContext, model: string, signal: AbortSignal | undefined): () => void {
  const calls = (task.modelCalls ??= [])
  const call = { model, signal }
  calls.push(call)
  return () => void calls.splice(calls.indexOf(call), 1)
}

const asking = (service: string, question: unknown, signal: AbortSignal | undefined): Asking =>
  askingOf(service, question, { clock: 'runs', limitMs: NO_LIMIT, ...(signal && { signal }) }, 'one')

/** A run without models does not have this service. */
function noModels(error: unknown): ModelDescriptions {
  if (ManyworldsError.is(error) && error.code === 'SERVICE_UNKNOWN') return {}
  throw error
}
