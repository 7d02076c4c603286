import { type Agent, defineMadeAgent, POLICY } from '../agent.ts'
import type { GradeFunction, Grader } from '../grade/grader.ts'
import { disposeWith } from './dispose-with.ts'
import type { Environment, EnvironmentContext, Maybe, Plain } from './environment.ts'
import { type EpisodePlan, EpisodeRun } from './episode-run.ts'
import type { Choice, Policy, PolicyHost, PolicyMode, PolicyRef, Question } from './policy.ts'
import { checkedParams, checkOptions } from './step-agent-checks.ts'

/** The params of a step agent, which are sent to workers. Change them with `agent.withParams({ ...agent.params, maxSteps: 50 })`. */
export interface StepAgentParams {
  /** The version of the policy that acts. Null: the agent has `act`. */
  readonly policy: PolicyRef | null
  readonly mode: PolicyMode
  readonly maxSteps: number
  readonly timeoutMs: number | null
}

/** Chooses an action: returns it, or `{ action, logProb, value }`. It is part of the agent's code and has no versions. */
export type Act<Observation, Action> = (
  question: Question<Observation, Action>,
  ctx: EnvironmentContext,
) => Maybe<Action | Chosen<Action>>

/** An action with details of its choice. */
export interface Chosen<Action> {
  readonly action: Action
  /** The index among the candidates. Default: the action is searched for. */
  readonly index?: number
  /** Null or left out: unknown. */
  readonly logProb?: number | null
  readonly value?: number
}

export interface StepAgentBase<Input, Observation, Action, State, Name extends string> {
  /** Unique in its module. */
  readonly name: Name
  readonly environment: Environment<Input, Observation, Action, State>
  /** Truncates the episode after this many actions. Default 10. */
  readonly maxSteps?: number
  /** Truncates the episode after this many milliseconds, including the reset. What it has reached is graded. Default: no limit. */
  readonly timeoutMs?: number
  /** `'greedy'`: the policy chooses the best action instead of sampling one. Default `'sample'`. */
  readonly mode?: PolicyMode
  /** How episodes are graded, unless the task or the run defines it. Default: the grade of the environment. */
  readonly grade?: Grader | GradeFunction<NoInfer<Input>, NoInfer<Observation>>
  /** The module that workers import to find this agent: `import.meta.url`. Needed only if the call site cannot be determined. */
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
 * Defines an agent that acts in an environment, step by step. Its answer is the last observation. Like `defineAgent`, call
 * it at the top level of a module.
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
  const grade = options.grade ?? environment.grade
  const { maxSteps = DEFAULT_MAX_STEPS, timeoutMs = null, mode = 'sample' } = options
  const params: StepAgentParams = {
    policy: policy === undefined ? null : { policy: policy.name, version: 0, digest: null, at: null },
    ...{ mode, maxSteps, timeoutMs },
  }
  const { setup, reset, step, close, tools = {} } = environment
  const made = [
    setup,
    reset,
    step,
    close,
    act,
    policy?.open,
    ...Object.values(tools).map((tool) => ('run' in tool ? tool.run : tool)),
  ]
  return defineMadeAgent<Input, Promise<Observation>, StepAgentParams, EpisodePlan, Name>(
    {
      name,
      params,
      ...(policy && { [POLICY]: policy as Policy }),
      ...(module !== undefined && { module }),
      ...(grade && { grade: grade as Grader | GradeFunction<Input, Awaited<Observation>> }),
      setup: async (given, host) => {
        const limits = checkedParams(given, name)
        await setup?.()
        return {
          agent: name,
          environment: environment as unknown as Environment,
          ...limits,
          ...(act
            ? planOfAct(name, act as Act<unknown, unknown>)
            : await planOfPolicy(policy as Policy, given.policy, host)),
        }
      },
      run: (input, ctx) => new EpisodeRun(ctx.state, input, ctx).run() as Promise<Observation>,
    },
    made,
  ) as Agent<Input, Observation, StepAgentParams, Name>
}

type Chooser = Pick<EpisodePlan, 'chooser' | 'choose' | 'read' | 'policy'>

function planOfAct(agent: string, act: Act<unknown, unknown>): Chooser {
  const read = (answer: unknown): Choice => (isChoice(answer) ? answer : { action: answer, logProb: null })
  return { chooser: `\`act\` of agent '${agent}'`, choose: act, read, policy: null }
}

const CHOICE_KEYS = ['action', 'index', 'logProb', 'value']

/** Whether the answer is a choice: an object with no other keys than these. Return an action that looks like one as `{ action }`. */
const isChoice = (answer: unknown): answer is Choice =>
  typeof answer === 'object' &&
  answer !== null &&
  'action' in answer &&
  Object.keys(answer).every((key) => CHOICE_KEYS.includes(key))

async function planOfPolicy(policy: Policy, ref: PolicyRef | null, host: PolicyHost): Promise<Chooser> {
  if (ref?.policy !== policy.name)
    throw new Error(`params name the policy '${ref?.policy}', but the agent has '${policy.name}'`)
  const open = await policy.open(ref, host)
  if (open?.act === undefined)
    throw new Error(`policy '${policy.name}' cannot be used by a step agent: its \`open\` returned no \`act\``)
  disposeWith(open, host.signal)
  return {
    chooser: `policy '${policy.name}'`,
    choose: (question) => open.act!(question),
    read: (answer) =>
      (typeof answer === 'object' && answer !== null ? answer : { action: undefined, logProb: null }) as Choice,
    policy: { name: policy.name, version: ref.version },
  }
}
