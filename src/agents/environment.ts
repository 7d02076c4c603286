import type { Context } from '../agent.ts'
import { didYouMean } from '../did-you-mean.ts'
import { ManyworldsError } from '../errors.ts'
import { type GradeFunction, type Grader, isGrader } from '../grade/grader.ts'
import type { ToolCall, ToolFailure, ToolOutcome, Tools } from './tools.ts'

/** A value or a promise of it. The result is awaited only if it is a promise, so a synchronous environment costs no promise. */
export type Maybe<T> = T | Promise<T>

/** The task as an environment and its tools see it: without the ground truth. */
export interface EnvironmentTask<Input = unknown> {
  readonly id: string
  readonly input: Input
  /** Tools that the task allows. Default: all tools of the environment. */
  readonly tools?: readonly string[]
  readonly metadata?: Readonly<Record<string, unknown>>
}

/** The context of `reset` and `step`. */
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
   * Aborted when the episode is cancelled: by the agent's `timeoutMs`, the task's timeout, or a cancellation. The episode does
   * not wait for work that is still running then, and ignores its result.
   */
  readonly signal: AbortSignal
}

/** The context of `step`. In an environment with `tools`, it has the outcome of the call that the action requested. */
export interface StepContext<Call = undefined> extends EnvironmentContext {
  readonly call: Call
}

/** How an episode starts. */
export interface ResetResult<State, Observation, Action> {
  /** The state of this episode: plain data, or anything that lives in the worker. A frozen object may be shared between episodes. */
  readonly state: State
  /** The observation that the policy gets; plain data. */
  readonly observation: Observation
  /** The actions to choose from, if they can be listed. */
  readonly candidates?: readonly Action[]
}

/** The result of an action. */
export interface StepResult<State, Observation, Action> {
  /** The next state. Default: the same object, which `step` may have changed. */
  readonly state?: State
  /** The next observation for the policy. After the last step it is the answer of the agent. */
  readonly observation: Observation
  /** A finite number; 0 if there is nothing to reward. */
  readonly reward: number
  /** The parts of the reward, by name. */
  readonly rewards?: Readonly<Record<string, number>>
  /** Whether the episode is over. */
  readonly done: boolean
  /** Whether the environment ended the episode at a limit of its own. `'unknown'`: the environment does not tell. */
  readonly truncated?: boolean | 'unknown'
  /** Whether the task is solved; read at the last step. Left out or null: unknown. */
  readonly success?: boolean | null
  /** The next actions to choose from, if they can be listed. */
  readonly candidates?: readonly Action[]
}

/** The argument of `defineEnvironment`. `reset` comes first because TypeScript infers the types of `tools`, `step` and `close` from it. */
export interface EnvironmentDefinition<Input, State, Observation, Action, T, Name extends string> {
  readonly name: Name
  /**
   * Prepares what all episodes of a worker need. Called once, before the first episode; its time counts for no task. If it
   * throws, the waiting tasks fail with `SETUP_FAILED`, and the next task tries again.
   */
  readonly setup?: () => Maybe<void>
  /** Starts an episode. If it throws, `close` is not called, because there is no state. */
  readonly reset: (
    task: EnvironmentTask<Input>,
    ctx: EnvironmentContext,
  ) => Maybe<ResetResult<State, Observation, Action>>
  /**
   * Tools by name. In an environment with tools, every action is a tool call, as text or as `{ tool, arguments }`. The call is
   * made before `step`, which finds the result in `ctx.call`. If the call fails, the error becomes the next observation and
   * `step` is not called.
   */
  readonly tools?: T & Tools<NoInfer<State>>
  /** Performs an action. */
  readonly step: (
    state: NoInfer<State>,
    action: Action,
    ctx: StepContext<keyof T extends never ? undefined : ToolOutcome<NoInfer<T>>>,
  ) => Maybe<StepResult<NoInfer<State>, Observation, Action>>
  /** Called once for every state that `reset` returned, however the episode ends, unless the worker dies first. */
  readonly close?: (state: NoInfer<State>) => Maybe<void>
  /**
   * How episodes are graded, unless the task, the run or the agent defines it: a grader or a function, which runs in a worker
   * and gets the ground truth. Without any of them, the rewards and the `success` of the environment are the grade.
   */
  readonly grade?: Grader | GradeFunction<NoInfer<Input>, NoInfer<Observation>>
}

/** A defined environment, for `stepAgent`. A policy sees only its observations. */
export interface Environment<
  Input = unknown,
  Observation = unknown,
  Action = unknown,
  State = unknown,
  Name extends string = string,
> {
  readonly name: Name
  readonly setup?: () => Maybe<void>
  // Properties, not methods: method parameters are bivariant, so a policy with other actions would type-check.
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

/** Any plain value. As a constraint it makes the compiler infer `'left' | 'right'` instead of `string`. */
export type Plain = string | number | boolean | object | null

/** The tools of an environment without tools. */
export type NoTools = Record<never, never>

/** The type of observations, including failed tool calls: a text if observations are texts, otherwise `{ error }`. */
export type Seen<Observation, T> = keyof T extends never
  ? Observation
  : [Observation] extends [string]
    ? string
    : Observation | ToolFailure

/**
 * Defines an environment for step agents. Its code runs in the worker, which finds it through the agent that uses it.
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

/** Checks own properties only: the methods of a class instance would not survive the copy. */
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
