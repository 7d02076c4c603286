import { type Agent, defineMadeAgent } from '../agent.ts'
import { ManyworldsError } from '../errors.ts'
import { didYouMean } from '../near-miss.ts'
import { MAX_TIMER_MS } from '../task-checks.ts'
import type { Environment, EnvironmentContext, Maybe, Plain } from './environment.ts'
import { type EpisodePlan, EpisodeRun } from './episode-run.ts'
import type { Choice, OpenPolicy, Policy, PolicyMode, PolicyRef, Question } from './policy.ts'

/** What travels to the workers with a step agent. Change it with `agent.withParams({ ...agent.params, maxSteps: 50 })`. */
export interface StepAgentParams {
  /** The version of the policy that acts; null: the agent has `act`. */
  readonly policy: PolicyRef | null
  readonly mode: PolicyMode
  readonly maxSteps: number
  readonly timeoutMs: number | null
}

/** Chooses an action: returns it, or `{ action, logProb, value }`. It is the code of one agent, and has no versions. */
export type Act<Observation, Action> = (
  question: Question<Observation, Action>,
  ctx: EnvironmentContext,
) => Maybe<Action | Chosen<Action>>

/** An action, with what is known about its choice. */
export interface Chosen<Action> {
  readonly action: Action
  /** Its place among the candidates; left out, it is looked for. */
  readonly index?: number
  /** Null or left out: not known. */
  readonly logProb?: number | null
  readonly value?: number
}

interface StepAgentBase<Input, Observation, Action, State, Name extends string> {
  /** Unique in its module. */
  readonly name: Name
  readonly environment: Environment<Input, Observation, Action, State>
  /** The episode is cut short after so many actions. Default 10. */
  readonly maxSteps?: number
  /** The episode is cut short after so many milliseconds, reset included; what has been reached is graded. Default none. */
  readonly timeoutMs?: number
  /** `'greedy'`: the policy takes the best action rather than one by its probability. Default `'sample'`. */
  readonly mode?: PolicyMode
  /** The module that workers import to find this agent: `import.meta.url`. Only needed where the call site does not tell. */
  readonly module?: string | URL
}

export type StepAgentOptions<Input, Observation, Action, State, Name extends string> = StepAgentBase<
  Input,
  Observation,
  Action,
  State,
  Name
> &
  (
    | { readonly policy: Policy<NoInfer<Observation>, NoInfer<Action>>; readonly act?: never }
    | { readonly act: Act<NoInfer<Observation>, NoInfer<Action>>; readonly policy?: never }
  )

const DEFAULT_MAX_STEPS = 10

/**
 * Defines an agent that acts in an environment, step by step. Its answer is the last observation. Like `defineAgent`, it is
 * called at the top level of a module.
 *
 * @example
 * const climber = stepAgent({ name: 'climber', environment: count, policy: randomPolicy(), maxSteps: 20 })
 * const response = await Runners.runTask(climber.task('start'))
 */
export function stepAgent<Input, Observation, Action extends Plain, State, const Name extends string>(
  options: StepAgentOptions<Input, Observation, Action, State, Name>,
): Agent<Input, Observation, StepAgentParams, Name> {
  checkOptions(options)
  const { name, environment, policy, act, module } = options
  const { maxSteps = DEFAULT_MAX_STEPS, timeoutMs = null, mode = 'sample' } = options
  const params: StepAgentParams = {
    policy: policy === undefined ? null : { policy: policy.name, version: 0, digest: null, at: null },
    ...{ mode, maxSteps, timeoutMs },
  }
  const { reset, step, close, tools = {} } = environment
  const made = [
    reset,
    step,
    close,
    act,
    policy?.open,
    ...Object.values(tools).map((tool) => ('run' in tool ? tool.run : tool)),
  ]
  return defineMadeAgent(
    {
      name,
      params,
      ...(module !== undefined && { module }),
      setup: async (given: StepAgentParams, { signal }): Promise<EpisodePlan> => ({
        agent: name,
        environment: environment as unknown as Environment,
        ...checkedParams(given, name),
        ...(act
          ? planOfAct(name, act as Act<unknown, unknown>)
          : await planOfPolicy(policy as Policy, given.policy, signal)),
      }),
      run: (input: Input, ctx) => new EpisodeRun(ctx.state, input, ctx).run() as Promise<Observation>,
    },
    made,
  )
}

type Chooser = Pick<EpisodePlan, 'chooser' | 'choose' | 'read' | 'policy'>

function planOfAct(agent: string, act: Act<unknown, unknown>): Chooser {
  const read = (answer: unknown): Choice => (isChoice(answer) ? answer : { action: answer, logProb: null })
  return { chooser: `\`act\` of agent '${agent}'`, choose: act, read, policy: null }
}

const CHOICE_KEYS = ['action', 'index', 'logProb', 'value']

/** An object of nothing but an action and what belongs to it. An action that looks so itself is returned as `{ action }`. */
const isChoice = (answer: unknown): answer is Choice =>
  typeof answer === 'object' &&
  answer !== null &&
  'action' in answer &&
  Object.keys(answer).every((key) => CHOICE_KEYS.includes(key))

async function planOfPolicy(policy: Policy, ref: PolicyRef | null, signal: AbortSignal): Promise<Chooser> {
  if (ref?.policy !== policy.name)
    throw new Error(`params name the policy '${ref?.policy}', and the agent has '${policy.name}'`)
  const open = await policy.open(ref, { signal, blob: noBlobs })
  if (open?.act === undefined)
    throw new Error(`policy '${policy.name}' has no \`act\` when it is open: a step agent cannot act with it`)
  disposeWith(open, signal)
  return {
    chooser: `policy '${policy.name}'`,
    choose: (question) => open.act!(question),
    read: (answer) =>
      (typeof answer === 'object' && answer !== null ? answer : { action: undefined, logProb: null }) as Choice,
    policy: { name: policy.name, version: ref.version },
  }
}

function disposeWith(open: OpenPolicy, signal: AbortSignal): void {
  if (open[Symbol.asyncDispose] === undefined) return
  const dispose = async () => open[Symbol.asyncDispose]?.()
  // The worker leaves: nobody is there to be told.
  signal.addEventListener('abort', () => void dispose().catch(() => {}), { once: true })
}

const noBlobs = async (): Promise<never> => {
  throw new Error('policies cannot have blobs in this version')
}

// ---- checks

const KEYS = ['name', 'environment', 'policy', 'act', 'maxSteps', 'timeoutMs', 'mode', 'module']

function checkOptions(options: unknown): void {
  const wrong = (what: string) => new ManyworldsError('AGENT_INVALID', `stepAgent: ${what}`)
  if (typeof options !== 'object' || options === null)
    throw wrong('give one object: stepAgent({ name: "…", environment, policy })')
  const { name, environment, policy, act, maxSteps, timeoutMs, mode } = options as Record<string, unknown>
  if (typeof name !== 'string' || name === '') throw wrong('`name` must be a non-empty string')
  const unknown = Object.keys(options).find((key) => !KEYS.includes(key))
  if (unknown !== undefined)
    throw wrong(`unknown key '${unknown}' in agent '${name}'; allowed: ${KEYS.join(', ')}${didYouMean(unknown, KEYS)}`)
  if (!hasFunctions(environment, ['reset', 'step']))
    throw wrong(`\`environment\` of agent '${name}' must be what defineEnvironment() returned`)
  if ((policy === undefined) === (act === undefined))
    throw wrong(`agent '${name}' needs \`policy\` or \`act\`, and not both`)
  if (policy !== undefined && !(hasFunctions(policy, ['open']) && typeof policy.name === 'string'))
    throw wrong(`\`policy\` of agent '${name}' must be a policy: { name, open(ref, host) }, such as randomPolicy()`)
  if (act !== undefined && typeof act !== 'function')
    throw wrong(`\`act\` of agent '${name}' must be a function, it is ${act === null ? 'null' : typeof act}`)
  const problem = problemOf({ maxSteps: maxSteps ?? 1, timeoutMs: timeoutMs ?? null, mode: mode ?? 'sample' })
  if (problem !== undefined) throw wrong(`${problem} (agent '${name}')`)
}

type Limits = Pick<StepAgentParams, 'maxSteps' | 'timeoutMs' | 'mode'>

/** Params may have been given by `withParams`. */
function checkedParams(params: StepAgentParams, name: string): Limits {
  const problem = typeof params === 'object' && params !== null ? problemOf(params) : 'params must be an object'
  if (problem !== undefined) throw new Error(`params of agent '${name}': ${problem}`)
  const { mode, maxSteps, timeoutMs } = params
  return { mode, maxSteps, timeoutMs }
}

function problemOf({ maxSteps, timeoutMs, mode }: Record<keyof Limits, unknown>): string | undefined {
  if (!Number.isSafeInteger(maxSteps) || (maxSteps as number) < 1)
    return `\`maxSteps\` must be a whole number of at least 1, it is ${String(maxSteps)}`
  if (timeoutMs !== null && !(typeof timeoutMs === 'number' && timeoutMs > 0 && timeoutMs <= MAX_TIMER_MS))
    return `\`timeoutMs\` must be a number of milliseconds up to ${MAX_TIMER_MS}, it is ${String(timeoutMs)}`
  return mode === 'sample' || mode === 'greedy'
    ? undefined
    : `\`mode\` must be 'sample' or 'greedy', it is ${String(mode)}`
}

const hasFunctions = (value: unknown, names: readonly string[]): value is Record<string, unknown> =>
  typeof value === 'object' &&
  value !== null &&
  names.every((name) => typeof (value as Record<string, unknown>)[name] === 'function')
