import {
  type Agent,
  type AgentRef,
  type AnswerOf,
  type AnyAgent,
  type Context,
  defineAgent,
  type InputOf,
} from './agent.ts'
import { ManyworldsError, TaskError } from './errors.ts'
import { registry } from './registry.ts'
import type { TaskLike, TaskOptions } from './task.ts'

/** What an agent decided to do. As the result of an aggregate, its `policyInfo` is the answer. */
export interface ActionModel<PolicyInfo = unknown> {
  readonly policyInfo: PolicyInfo
  readonly toolName?: string
  readonly actionName?: string
  readonly agentName?: string
  readonly params?: Readonly<Record<string, unknown>>
}

/** What one sub-agent came to. A failure is a value: the aggregate decides what it means. */
export type SubResult<Answer = unknown> =
  | { readonly success: true; readonly answer: Answer; readonly error?: never }
  | { readonly success: false; readonly answer?: never; readonly error: Error }

/** Results by sub-agent name. */
export type SubResults<Agents extends readonly AnyAgent[]> = {
  readonly [A in Agents[number] as A['name']]: SubResult<AnswerOf<A>>
}

/** What every sub-agent can take. */
type SharedInput<Agents extends readonly AnyAgent[]> = (
  Agents[number] extends infer A
    ? A extends AnyAgent
      ? (input: InputOf<A>) => void
      : never
    : never
) extends (input: infer Input) => void
  ? Input
  : never

type Unwrapped<Result> = Awaited<Result> extends ActionModel<infer PolicyInfo> ? PolicyInfo : Awaited<Result>

interface GroupParams {
  /** The driver's params of each sub-agent: data travels, whatever the worker's own evaluation came to. */
  readonly subParams: readonly unknown[]
}

/** What the two kinds of grouped agents share: they are agents, made of agents. */
abstract class GroupAgent<const Agents extends readonly AnyAgent[], Input, Answer>
  implements Agent<Input, Answer, GroupParams>
{
  readonly name: string
  readonly params: GroupParams
  readonly ref: AgentRef
  readonly agents: Agents
  readonly #agent: Agent<Input, Answer, GroupParams>

  constructor(
    kind: string,
    agents: Agents,
    name: string | undefined,
    run: (input: Input, ctx: Context<GroupParams>) => Promise<Answer>,
  ) {
    checkAgents(kind, agents)
    this.agents = agents
    const names = agents.map((agent) => agent.name)
    this.#agent = defineAgent<Input, Promise<Answer>, GroupParams>({
      name: name ?? `${kind}(${names.join(', ')})`,
      params: { subParams: agents.map((agent) => agent.params) },
      run: run as (input: Input, ctx: Context<GroupParams, undefined>) => Promise<Answer>,
    }) as Agent<Input, Answer, GroupParams>
    this.name = this.#agent.name
    this.params = this.#agent.params
    this.ref = this.#agent.ref
  }

  task(input: Input, options?: TaskOptions): TaskLike<Agent<Input, Answer, GroupParams>> {
    return this.#agent.task(input, options)
  }

  withParams(params: GroupParams): Agent<Input, Answer, GroupParams> {
    return this.#agent.withParams(params)
  }
}

export interface ParallelizableOptions<Agents extends readonly AnyAgent[], Result> {
  readonly name?: string
  readonly agents: Agents
  /** Makes one answer of the results; without it the answer is the results themselves. */
  readonly aggregateFunc?: (
    agent: { readonly name: string; readonly agents: Agents },
    results: SubResults<Agents>,
  ) => Result
  /** Send the sub-agents over the workers as sub-tasks, instead of running them all in one. */
  readonly spread?: boolean
}

/**
 * An agent that gives its input to several others at once. One of them failing is a value that the aggregate sees; all of
 * them failing is a failure.
 */
export class ParallelizableAgent<
  const Agents extends readonly AnyAgent[],
  Result = SubResults<Agents>,
> extends GroupAgent<Agents, SharedInput<Agents>, Unwrapped<Result>> {
  constructor(options: ParallelizableOptions<Agents, Result>) {
    const {
      name,
      agents,
      aggregateFunc,
      spread = false,
    } = checkOptions('ParallelizableAgent', options, ['name', 'agents', 'aggregateFunc', 'spread'])
    super('parallel', agents, name, async (input, ctx) => {
      const results = spread ? await runSpread(agents, input, ctx) : await runHere(agents, input, ctx)
      refuseIfAllFailed(this.name, results)
      const result = aggregateFunc ? await aggregateFunc(this, results as SubResults<Agents>) : results
      return unwrap(result) as Unwrapped<Result>
    })
  }
}

export interface SerialableOptions<Agents extends readonly AnyAgent[], Result> {
  readonly name?: string
  readonly agents: Agents
  /** Makes one answer of the results; without it the answer is that of the last agent. */
  readonly aggregateFunc?: (
    agent: { readonly name: string; readonly agents: Agents },
    results: SubResults<Agents>,
  ) => Result
}

type Last<Agents extends readonly AnyAgent[]> = Agents extends readonly [...unknown[], infer A]
  ? AnswerOf<A>
  : AnswerOf<Agents[number]>

/** An agent that runs others one after the other, each with the answer of the one before as its input. */
export class SerialableAgent<const Agents extends readonly AnyAgent[], Result = Last<Agents>> extends GroupAgent<
  Agents,
  InputOf<Agents[0]>,
  Unwrapped<Result>
> {
  constructor(options: SerialableOptions<Agents, Result>) {
    const { name, agents, aggregateFunc } = checkOptions('SerialableAgent', options, [
      'name',
      'agents',
      'aggregateFunc',
    ])
    super('serial', agents, name, async (input, ctx) => {
      const results: Record<string, SubResult> = {}
      let value: unknown = input
      for (const [index, agent] of agents.entries()) {
        value = await runSub(agent, value, ctx, index)
        results[agent.name] = { success: true, answer: value }
      }
      const result = aggregateFunc ? await aggregateFunc(this, results as SubResults<Agents>) : value
      return unwrap(result) as Unwrapped<Result>
    })
  }
}

async function runHere(
  agents: readonly AnyAgent[],
  input: unknown,
  ctx: Context<GroupParams>,
): Promise<Record<string, SubResult>> {
  const settled = await Promise.allSettled(agents.map((agent, index) => runSub(agent, input, ctx, index)))
  return named(agents, (_agent, index) => {
    const end = settled[index]!
    return end.status === 'fulfilled'
      ? { success: true, answer: end.value }
      : { success: false, error: asError(end.reason) }
  })
}

async function runSpread(
  agents: readonly AnyAgent[],
  input: unknown,
  ctx: Context<GroupParams>,
): Promise<Record<string, SubResult>> {
  const tasks = agents.map((agent, index) =>
    agent.withParams(ctx.params.subParams[index]).task(input, { id: agent.name }),
  )
  const responses = [...(await ctx.runTask(tasks)).values()]
  return named(agents, (_agent, index) => {
    const response = responses[index]!
    return response.success ? { success: true, answer: response.answer } : { success: false, error: response.error }
  })
}

/** Runs a sub-agent in this worker: its own code, params and set-up, the group's context. */
async function runSub(agent: AnyAgent, input: unknown, ctx: Context<GroupParams>, index: number): Promise<unknown> {
  const found = registry.find(agent.ref.module, agent.ref.name)
  if (!found)
    throw new ManyworldsError('AGENT_NOT_FOUND', `sub-agent '${agent.name}' of ${agent.ref.module} is not loaded here`)
  const params = ctx.params.subParams[index]
  const state = await setUpOnce(agent, params, ctx)
  return found.definition.run(input, contextFor(agent.name, params, state, ctx))
}

const states = new Map<string, Promise<unknown>>()

function setUpOnce(agent: AnyAgent, params: unknown, ctx: Context): Promise<unknown> | undefined {
  const setup = registry.find(agent.ref.module, agent.ref.name)?.definition.setup
  if (!setup) return undefined
  const key = `${agent.ref.module}\0${agent.ref.name}\0${JSON.stringify(params)}`
  let state = states.get(key)
  if (!state) {
    state = Promise.resolve(setup(params, { signal: ctx.signal }))
    states.set(key, state)
    // A passing fault is not remembered.
    state.catch(() => states.delete(key))
  }
  return state
}

/** The group's context as a sub-agent sees it; steps say whose they are. */
function contextFor(name: string, params: unknown, state: unknown, ctx: Context): Context {
  return {
    params,
    state,
    attempt: ctx.attempt,
    idempotencyKey: `${ctx.idempotencyKey}/${name}`,
    get signal() {
      return ctx.signal
    },
    get task() {
      return ctx.task
    },
    get previous() {
      return ctx.previous
    },
    get results() {
      return ctx.results
    },
    log: ctx.log,
    random: ctx.random,
    step: (record) => ctx.step({ agent: name, ...record }),
    runTask: ctx.runTask,
  }
}

function named(
  agents: readonly AnyAgent[],
  resultOf: (agent: AnyAgent, index: number) => SubResult,
): Record<string, SubResult> {
  return Object.fromEntries(agents.map((agent, index) => [agent.name, resultOf(agent, index)]))
}

function refuseIfAllFailed(name: string, results: Record<string, SubResult>): void {
  const all = Object.entries(results)
  if (all.some(([, result]) => result.success)) return
  const reasons = all.map(([agent, result]) => `${agent}: ${result.error?.message}`).join('; ')
  throw new TaskError('ALL_SUBAGENTS_FAILED', `all ${all.length} sub-agents of '${name}' failed: ${reasons}`)
}

const asError = (reason: unknown): Error =>
  reason instanceof Error ? reason : new Error(String(reason), { cause: reason })

function unwrap(result: unknown): unknown {
  const isAction = typeof result === 'object' && result !== null && Object.hasOwn(result, 'policyInfo')
  return isAction ? (result as ActionModel).policyInfo : result
}

function checkOptions<O extends object>(kind: string, options: O, known: readonly string[]): O {
  if (typeof options !== 'object' || options === null)
    throw new ManyworldsError('AGENT_INVALID', `new ${kind}: give { agents: [...] }`)
  const unknown = Object.keys(options).find((key) => !known.includes(key))
  if (unknown !== undefined)
    throw new ManyworldsError('AGENT_INVALID', `new ${kind}: unknown key '${unknown}'; allowed: ${known.join(', ')}`)
  return options
}

function checkAgents(kind: string, agents: readonly AnyAgent[]): void {
  if (!Array.isArray(agents) || agents.length === 0)
    throw new ManyworldsError('AGENT_INVALID', `a ${kind} agent needs \`agents\`: an array of at least one`)
  const names = new Set<string>()
  for (const agent of agents) {
    if (typeof agent?.ref?.module !== 'string')
      throw new ManyworldsError(
        'AGENT_INVALID',
        `a ${kind} agent takes what defineAgent() returned, and got something else`,
      )
    if (names.has(agent.name))
      throw new ManyworldsError(
        'AGENT_INVALID',
        `a ${kind} agent has two sub-agents with the name '${agent.name}'; results are keyed by name`,
      )
    names.add(agent.name)
  }
}
