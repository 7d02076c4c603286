import type { Context } from '../agent.ts'
import { ManyworldsError } from '../errors.ts'
import { type GradeFunction, type Grader, isGrader } from '../grade/grader.ts'
import { didYouMean } from '../near-miss.ts'
import type { ToolCall, ToolFailure, ToolOutcome, Tools } from './tools.ts'

/** A value, or a promise of it. Where nothing is awaited, an environment that answers at once costs no promise. */
export type Maybe<T> = T | Promise<T>

/** The task as an environment and its tools see it: what the agent was given, and never what a grader compares with. */
export interface EnvironmentTask<Input = unknown> {
  readonly id: string
  readonly input: Input
  /** Tools that the task allows; left out: all of the environment. */
  readonly tools?: readonly string[]
  readonly metadata?: Readonly<Record<string, unknown>>
}

/** What `reset` and `step` are given besides their arguments. */
export interface EnvironmentContext
  extends Pick<
    Context,
    | 'attempt'
    | 'idempotencyKey'
    | 'log'
    | 'random'
    | 'randomStream'
    | 'ask'
    | 'askStream'
    | 'once'
    | 'model'
    | 'generate'
    | 'complete'
    | 'limit'
  > {
  /**
   * Aborted when the episode is given up: by the agent's `timeoutMs`, the task's, or a cancellation. What is still running
   * then is not waited for, and its result is ignored.
   */
  readonly signal: AbortSignal
}

/** What `step` is given: in an environment with `tools`, also what the call that the action asked for came to. */
export interface StepContext<Call = undefined> extends EnvironmentContext {
  readonly call: Call
}

/** How an episode begins. */
export interface ResetResult<State, Observation, Action> {
  /** This episode's own: plain data, or whatever lives in the worker. A frozen object may be shared between episodes. */
  readonly state: State
  /** What the policy sees; plain data. */
  readonly observation: Observation
  /** The actions to choose from, where they can be listed. */
  readonly candidates?: readonly Action[]
}

/** What an action led to. */
export interface StepResult<State, Observation, Action> {
  /** The next state; left out: the same object, changed in place or not. */
  readonly state?: State
  /** What the policy sees next; after the last step, the answer of the agent. */
  readonly observation: Observation
  /** A finite number; 0 where there is nothing to reward. */
  readonly reward: number
  /** The parts of the reward, by name. */
  readonly rewards?: Readonly<Record<string, number>>
  /** The episode is over. */
  readonly done: boolean
  /** It is over because the environment cut it short, at a limit of its own; `'unknown'`: it does not say which. */
  readonly truncated?: boolean | 'unknown'
  /** Whether the task is solved; of the last step. Left out or null: the environment does not say. */
  readonly success?: boolean | null
  /** The actions to choose from next, where they can be listed. */
  readonly candidates?: readonly Action[]
}

/** What `defineEnvironment` is given. `reset` comes first: TypeScript learns from it what `tools`, `step` and `close` get. */
export interface EnvironmentDefinition<Input, State, Observation, Action, T, Name extends string> {
  readonly name: Name
  /**
   * Makes ready what all episodes of a worker need, once, before the first of them: its time counts for none. If it throws, the
   * tasks that wait for it fail with `SETUP_FAILED`, and the next task tries again.
   */
  readonly setup?: () => Maybe<void>
  /** Begins an episode. If it throws, there is no state, and `close` is not called. */
  readonly reset: (
    task: EnvironmentTask<Input>,
    ctx: EnvironmentContext,
  ) => Maybe<ResetResult<State, Observation, Action>>
  /**
   * Tools by name. In an environment that has some, every action is a call of one, as text or as `{ tool, arguments }`. It is
   * made before `step`, which finds the result in `ctx.call`. A call that fails is an observation, and `step` is not asked.
   */
  readonly tools?: T & Tools<NoInfer<State>>
  /** Takes an action. */
  readonly step: (
    state: NoInfer<State>,
    action: Action,
    ctx: StepContext<keyof T extends never ? undefined : ToolOutcome<NoInfer<T>>>,
  ) => Maybe<StepResult<NoInfer<State>, Observation, Action>>
  /** Called once for every state that `reset` gave, however the episode ends. Only the death of the worker comes before it. */
  readonly close?: (state: NoInfer<State>) => Maybe<void>
  /**
   * How episodes are graded, unless the task, the run or the agent says so: a grader, or a function, which runs in a worker
   * and gets the ground truth. Without any of them, the rewards and the `success` of the environment are the grade.
   */
  readonly grade?: Grader | GradeFunction<NoInfer<Input>, NoInfer<Observation>>
}

/** A defined environment, for `stepAgent`. `Observation` is all that a policy may see there. */
export interface Environment<
  Input = unknown,
  Observation = unknown,
  Action = unknown,
  State = unknown,
  Name extends string = string,
> {
  readonly name: Name
  readonly setup?: () => Maybe<void>
  // Properties, and no methods: a policy must not give it actions that it does not know.
  readonly reset: (
    task: EnvironmentTask<Input>,
    ctx: EnvironmentContext,
  ) => Maybe<ResetResult<State, Observation, Action>>
  readonly step: (
    state: State,
    action: Action,
    ctx: StepContext<ToolOutcome | undefined>,
  ) => Maybe<StepResult<State, Observation, Action>>
  readonly tools?: Tools<State>
  readonly close?: (state: State) => Maybe<void>
  readonly grade?: Grader | GradeFunction
}

/** Any plain value. As a constraint it has the compiler keep `'left' | 'right'` where it would make `string` of them. */
export type Plain = string | number | boolean | object | null

/** In an environment without tools. */
type NoTools = Record<never, never>

/** Of failed calls a policy sees the text, if observations are texts; else `{ error }`. */
type Seen<Observation, T> = keyof T extends never
  ? Observation
  : [Observation] extends [string]
    ? string
    : Observation | ToolFailure

/**
 * Defines an environment: what a step agent acts in. Its code runs in the worker, found through the agent that uses it.
 *
 * @example
 * const count = defineEnvironment({
 *   name: 'count-to-three',
 *   reset: () => ({ state: { at: 0 }, observation: 0, candidates: ['up', 'down'] }),
 *   step(state, action) {
 *     state.at += action === 'up' ? 1 : -1
 *     return { observation: state.at, reward: state.at === 3 ? 1 : 0, done: state.at === 3, candidates: ['up', 'down'] }
 *   },
 * })
 */
export function defineEnvironment<
  Input,
  State,
  Observation,
  T extends object = NoTools,
  Action extends Plain = keyof T extends never ? Plain : string | ToolCall,
  const Name extends string = string,
>(
  definition: EnvironmentDefinition<Input, State, Observation, Action, T, Name>,
): Environment<Input, Seen<Observation, T>, Action, State, Name> {
  const own = typeof definition === 'object' ? { ...definition } : definition
  checkDefinition(own)
  return Object.freeze(own) as unknown as Environment<Input, Seen<Observation, T>, Action, State, Name>
}

const KEYS = ['name', 'setup', 'reset', 'tools', 'step', 'close', 'grade']
const OPTIONAL = ['setup', 'close']

/** Of its own properties: a class would have its methods elsewhere. */
function checkDefinition(definition: unknown): void {
  const wrong = (what: string) => new ManyworldsError('ENVIRONMENT_INVALID', `defineEnvironment: ${what}`)
  if (typeof definition !== 'object' || definition === null)
    throw wrong(
      'give one object: defineEnvironment({ name: "…", reset: (task, ctx) => …, step: (state, action, ctx) => … })',
    )
  const { name, setup, reset, step, close, tools, grade } = definition as Record<string, unknown>
  if (typeof name !== 'string' || name === '') throw wrong('`name` must be a non-empty string')
  for (const [key, value] of Object.entries({ setup, reset, step, close })) {
    if (typeof value === 'function' || (value === undefined && OPTIONAL.includes(key))) continue
    throw wrong(
      `\`${key}\` of environment '${name}' must be a function, it is ${value === null ? 'null' : typeof value}`,
    )
  }
  const unknown = Object.keys(definition).find((key) => !KEYS.includes(key))
  if (unknown !== undefined)
    throw wrong(
      `unknown key '${unknown}' in environment '${name}'; allowed: ${KEYS.join(', ')}${didYouMean(unknown, KEYS)}`,
    )
  if (tools !== undefined) checkTools(name, tools, wrong)
  if (grade !== undefined && typeof grade !== 'function' && !isGrader(grade))
    throw wrong(`\`grade\` of environment '${name}' must be a function or a grader, it is ${typeof grade}`)
}

function checkTools(name: string, tools: unknown, wrong: (what: string) => ManyworldsError): void {
  if (typeof tools !== 'object' || tools === null || Array.isArray(tools))
    throw wrong(`\`tools\` of environment '${name}' must be an object: { search: async (args, ctx) => … }`)
  for (const [key, tool] of Object.entries(tools)) {
    const run: unknown = typeof tool === 'object' && tool !== null ? (tool as { run?: unknown }).run : tool
    if (typeof run !== 'function')
      throw wrong(`tool '${key}' of environment '${name}' must be a function, or { description, run }`)
  }
}
