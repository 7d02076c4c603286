import {
  type Agent,
  type AgentRef,
  type AnswerOf,
  type AnyAgent,
  type Context,
  defineAgent,
  type InputOf,
  isAgent,
  type NoInput,
  type TYPES,
} from './agent.ts'
import { ManyworldsError, TaskError } from './errors.ts'
import { type GroupParams, MEMBERS, runHere, runSpread, type SubResult, subAgentRunner } from './sub-agents.ts'
import type { TaskLike, TaskOptions } from './task.ts'

/** What an agent decided to do. As the result of an aggregate, its `policyInfo` is the answer. */
export interface ActionModel<PolicyInfo = unknown> {
  readonly policyInfo: PolicyInfo
  readonly toolName?: string
  readonly actionName?: string
  readonly agentName?: string
  readonly params?: Readonly<Record<string, unknown>>
}

/** Results by sub-agent name. */
export type SubResults<Agents extends readonly AnyAgent[]> = {
  readonly [A in Agents[number] as A['name']]: SubResult<AnswerOf<A>>
}

/** The input that every sub-agent accepts. */
export type SharedInput<Agents extends readonly AnyAgent[]> = (
  Agents[number] extends infer A
    ? A extends AnyAgent
      ? (input: InputOf<A>) => void
      : never
    : never
) extends (input: infer Input) => void
  ? Input
  : never

/** The answer of an aggregate, without its promise and its ActionModel. */
export type Unwrapped<Result> = PolicyInfoOf<Awaited<Result>>
/** The `policyInfo` of an ActionModel; other answers unchanged. */
export type PolicyInfoOf<Result> = Result extends ActionModel<infer PolicyInfo> ? PolicyInfo : Result

/** Makes one answer of the results. */
export type Aggregate<Agents extends readonly AnyAgent[], Result> = (
  agent: { readonly name: string; readonly agents: Agents },
  results: SubResults<Agents>,
) => Result

/** The base of both kinds of group agents, which are made of other agents. */
export abstract class GroupAgent<Agents extends readonly AnyAgent[], Input, Answer, Name extends string>
  implements Agent<Input, Answer, GroupParams, Name>
{
  readonly name: Name
  readonly params: GroupParams
  readonly ref: AgentRef
  readonly agents: Agents
  declare readonly [TYPES]?: (input: Input) => Answer
  readonly #agent: Agent<Input, Answer, GroupParams, Name>

  constructor(
    kind: string,
    agents: Agents,
    name: Name | undefined,
    run: (input: Input, ctx: Context<GroupParams>) => Promise<Answer>,
    spread = false,
  ) {
    checkAgents(kind, agents)
    this.agents = agents
    if (!spread) Object.defineProperty(run, MEMBERS, { value: agents })
    const names = agents.map((agent) => agent.name)
    this.#agent = defineAgent({
      name: name ?? `${kind}(${names.join(', ')})`,
      params: { subParams: agents.map((agent) => agent.params) },
      run,
    }) as unknown as Agent<Input, Answer, GroupParams, Name>
    this.name = this.#agent.name
    this.params = this.#agent.params
    this.ref = this.#agent.ref
  }

  task(...none: NoInput<Input>): TaskLike<Agent<Input, Answer, GroupParams, Name>>
  task(input: Input, options?: TaskOptions): TaskLike<Agent<Input, Answer, GroupParams, Name>>
  task(input?: unknown, options?: TaskOptions): TaskLike<Agent<Input, Answer, GroupParams, Name>> {
    return this.#agent.task(input as Input, options)
  }

  withParams(params: GroupParams): Agent<Input, Answer, GroupParams, Name> {
    return this.#agent.withParams(params)
  }
}

/** What `new ParallelizableAgent` takes. */
export interface ParallelizableOptions<Agents extends readonly AnyAgent[], Result, Name extends string> {
  readonly name?: Name
  readonly agents: Agents
  /** Makes one answer of the results; without it the answer is the results themselves. */
  readonly aggregateFunc?: Aggregate<Agents, Result>
  /** Run the sub-agents as sub-tasks on any worker, instead of all in one worker. */
  readonly spread?: boolean
}

/**
 * An agent that gives its input to several others at once. If one of them fails, the aggregate sees its error as a value; if all
 * of them fail, the task fails.
 *
 * @example
 * const panel = new ParallelizableAgent({ name: 'panel', agents: [optimist, skeptic] })
 * const { answer } = await Runners.runTask(panel.task('Will it rain?'))
 */
export class ParallelizableAgent<
  const Agents extends readonly AnyAgent[],
  Result = SubResults<Agents>,
  const Name extends string = string,
> extends GroupAgent<Agents, SharedInput<Agents>, Unwrapped<Result>, Name> {
  constructor(options: ParallelizableOptions<Agents, Result, Name>) {
    const known = ['name', 'agents', 'aggregateFunc', 'spread']
    const { name, agents, aggregateFunc, spread = false } = checkOptions('ParallelizableAgent', options, known)
    const run = async (input: SharedInput<Agents>, ctx: Context<GroupParams>) => {
      const results = await (spread ? runSpread : runHere)(agents, input, ctx)
      refuseIfAllFailed(this.name, agents, results)
      return aggregated(this, agents, results, aggregateFunc)
    }
    super('parallel', agents, name, run, spread)
  }
}

/** What `new SerialableAgent` takes. */
export interface SerialableOptions<Agents extends readonly AnyAgent[], Result, Name extends string> {
  readonly name?: Name
  readonly agents: Agents
  /** Makes one answer of the results; without it the answer is that of the last agent. */
  readonly aggregateFunc?: Aggregate<Agents, Result>
}

/** The answer of the last agent of a chain. */
export type Last<Agents extends readonly AnyAgent[]> = Agents extends readonly [...unknown[], infer A]
  ? AnswerOf<A>
  : AnswerOf<Agents[number]>

/** Agents of which each accepts the answer of the one before. An array of unknown length cannot be checked. */
export type Chain<Agents extends readonly AnyAgent[]> = Agents extends readonly [
  infer First extends AnyAgent,
  ...infer Rest extends readonly AnyAgent[],
]
  ? readonly [First, ...Links<AnswerOf<First>, Rest>]
  : Agents

type Links<Given, Agents extends readonly AnyAgent[]> = Agents extends readonly [
  infer Next extends AnyAgent,
  ...infer Rest extends readonly AnyAgent[],
]
  ? readonly [Taking<Given, Next>, ...Links<AnswerOf<Next>, Rest>]
  : readonly []

/** The agent itself, or the agent that would fit there: the compiler then shows the two types that differ. */
type Taking<Given, Next extends AnyAgent> = [Given] extends [InputOf<Next>]
  ? Next
  : Agent<Given, AnswerOf<Next>, Next['params'], Next['name']>

/**
 * An agent that runs others one after the other, each with the answer of the one before as its input.
 *
 * @example
 * const report = new SerialableAgent({ name: 'report', agents: [research, summarize] })
 * const { answer } = await Runners.runTask(report.task('tides'))
 */
export class SerialableAgent<
  const Agents extends readonly AnyAgent[],
  Result = Last<Agents>,
  const Name extends string = string,
> extends GroupAgent<Agents, InputOf<Agents[0]>, Unwrapped<Result>, Name> {
  constructor(options: SerialableOptions<Agents, Result, Name> & { readonly agents: Chain<Agents> }) {
    const known = ['name', 'agents', 'aggregateFunc']
    const { name, agents, aggregateFunc } = checkOptions('SerialableAgent', options, known)
    super('serial', agents, name, async (input, ctx) => {
      const runSub = subAgentRunner(agents, 'serial', ctx)
      const results: SubResult[] = []
      let value: unknown = input
      for (const [index, agent] of agents.entries()) {
        const given = value
        try {
          value = await runSub(agent, given, index)
        } catch (error) {
          ctx.log(failedLink(this.name, agents, index, given))
          throw error
        }
        results.push({ success: true, answer: value })
      }
      if (!aggregateFunc) return unwrap(value) as Unwrapped<Result>
      return aggregated(this, agents, results, aggregateFunc)
    })
  }
}

/**
 * Which link failed, and the kind of its input. This is a line in the task's log and not part of the error, which must stay as
 * thrown: a `RetryableError` must remain one.
 */
function failedLink(name: string, agents: readonly AnyAgent[], index: number, given: unknown): string {
  const from = index === 0 ? 'the input of the task' : `the answer of '${agents[index - 1]!.name}'`
  return `'${name}': link ${index + 1} of ${agents.length}, '${agents[index]!.name}', failed; it was given ${kindOf(given)}, ${from}`
}

function kindOf(value: unknown): string {
  if (value === null || value === undefined) return String(value)
  if (Array.isArray(value)) return `an array of ${value.length}`
  if (typeof value !== 'object') return `a ${typeof value}`
  const keys = Object.keys(value)
  return `an object with ${keys.length === 0 ? 'no keys' : `the keys ${keys.slice(0, 10).join(', ')}${keys.length > 10 ? ', …' : ''}`}`
}

async function aggregated<Agents extends readonly AnyAgent[], Result>(
  group: { readonly name: string; readonly agents: Agents },
  agents: Agents,
  results: readonly SubResult[],
  aggregateFunc: Aggregate<Agents, Result> | undefined,
): Promise<Unwrapped<Result>> {
  const byName = Object.fromEntries(agents.map((agent, index) => [agent.name, results[index]]))
  if (!aggregateFunc) return byName as Unwrapped<Result>
  return unwrap(await aggregateFunc(group, byName as unknown as SubResults<Agents>)) as Unwrapped<Result>
}

function unwrap(result: unknown): unknown {
  const isAction = typeof result === 'object' && result !== null && Object.hasOwn(result, 'policyInfo')
  return isAction ? (result as ActionModel).policyInfo : result
}

function refuseIfAllFailed(name: string, agents: readonly AnyAgent[], results: readonly SubResult[]): void {
  if (results.some((result) => result.success)) return
  const reasons = results.map((result, index) => `${agents[index]?.name}: ${result.error?.message}`).join('; ')
  throw new TaskError('ALL_SUBAGENTS_FAILED', `all ${results.length} sub-agents of '${name}' failed: ${reasons}`)
}

function checkOptions<O extends object>(kind: string, options: O, known: readonly string[]): O {
  const wrong = (what: string) => new ManyworldsError('AGENT_INVALID', `new ${kind}: ${what}`)
  if (typeof options !== 'object' || options === null) throw wrong('give { agents: [...] }')
  const unknown = Object.keys(options).find((key) => !known.includes(key))
  if (unknown !== undefined) throw wrong(`unknown key '${unknown}'; allowed: ${known.join(', ')}`)
  const { aggregateFunc, spread } = options as { aggregateFunc?: unknown; spread?: unknown }
  if (aggregateFunc !== undefined && typeof aggregateFunc !== 'function')
    throw wrong(`\`aggregateFunc\` must be a function (agent, results) => …, it is ${typeof aggregateFunc}`)
  if (spread !== undefined && typeof spread !== 'boolean')
    throw wrong(`\`spread\` must be true or false, it is ${typeof spread}`)
  return options
}

function checkAgents(kind: string, agents: readonly AnyAgent[]): void {
  if (!Array.isArray(agents) || agents.length === 0)
    throw new ManyworldsError('AGENT_INVALID', `a ${kind} agent needs \`agents\`: an array of at least one`)
  const names = new Set<string>()
  for (const [index, agent] of agents.entries()) {
    if (!isAgent(agent))
      throw new ManyworldsError(
        'AGENT_INVALID',
        `\`agents[${index}]\` of a ${kind} agent is not an agent; give what defineAgent() returned`,
      )
    if (names.has(agent.name))
      throw new ManyworldsError(
        'AGENT_INVALID',
        `a ${kind} agent has two sub-agents with the name '${agent.name}'; results are keyed by name`,
      )
    names.add(agent.name)
  }
}
