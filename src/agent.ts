import type { Policy } from './agents/policy.ts'
import { refuseBundled } from './call-site.ts'
import { moduleOf, register } from './definition.ts'
import { ManyworldsError } from './errors.ts'
import { type GradeFunction, type Grader, graderOfAgent, isGrader } from './grade/grader.ts'
import type { Completed, CompleteOptions, Generated, GenerateOptions } from './models/generate.ts'
import type { LanguageModel } from './models/language-model.ts'
import { checkNode } from './oldest-node.ts'
import type { TaskFor, TaskLike, TaskOptions, TaskResponse, TasksFor } from './task.ts'
import type { StepRecord } from './trajectory/step.ts'

// A registered symbol, because a process may hold two copies of this package.
export const POLICY: unique symbol = Symbol.for('manyworlds.policy') as never

/** What an agent's `run` is given besides its input. */
export interface Context<Params = unknown, State = unknown> {
  /** Aborted when the task times out or is cancelled. Pass it to `fetch`, timers and child processes. */
  readonly signal: AbortSignal
  /** 1 in the first attempt, 2 in the second, … */
  readonly attempt: number
  /**
   * `runId/taskId`: the same in every attempt and rerun of this task. Pass it to services that recognize repeated requests.
   */
  readonly idempotencyKey: string
  /** The task: its id, tools, metadata, group and rollout. */
  readonly task: TaskInfo
  /** The agent's params, as the driver has them. */
  readonly params: Params
  /** What the agent's `setup` returned in this worker. */
  readonly state: State
  /** Keeps a line of output with this task. `console.*` does the same. */
  log(...values: unknown[]): void
  /**
   * A random number in [0, 1). It depends only on the run's seed, the task and its rollout, so a rerun draws the same
   * numbers on every engine.
   */
  random(): number
  /**
   * A named source of random numbers, independent of `random` and of other names. If delays come from
   * `randomStream('latency')`, the agent's other choices stay the same with and without them. Calls with the same name
   * return the same source, which continues.
   */
  randomStream(name: string): () => number
  /**
   * Records a step of the trajectory. It is kept even if the task later fails, times out or kills its worker. Await it if
   * you record megabytes: it waits while the disk is slower than the steps.
   */
  step(record: StepRecord): Promise<void>
  /** With `sequenceDependent`: the answer of the task before this one. */
  readonly previous: unknown
  /** With `dependsOn`: the answers of those tasks, by id. */
  readonly results: ReadonlyMap<string, unknown>
  /**
   * Runs a task, or an array of tasks, as sub-tasks on any worker. Returns the response, or a Map of responses by id. While
   * this task waits, other tasks use its slot. See docs/concurrency.md#sub-tasks.
   */
  runTask: RunSubTask
  /**
   * Calls a service of the driver: one of `services` in the run configuration. While the task waits, it keeps its slot and
   * its timeout is paused, for at most ten minutes; `options` changes that. See docs/services.md.
   */
  ask<Answer = unknown>(service: string, question?: unknown, options?: AskOptions): Promise<Answer>
  /** Calls a service that returns an async iterable. Leaving the loop ends the request. */
  askStream<Part = unknown>(service: string, question?: unknown, options?: AskOptions): AsyncIterableIterator<Part>
  /**
   * Does something that must not be repeated, such as a payment: calls `make` and stores the result before returning it. If
   * this attempt runs again because its worker or the driver died, it returns the stored result without calling `make`.
   * `name` and `question` identify the work; two calls with the same ones in one attempt do it twice.
   */
  once<Result>(name: string, question: unknown, make: () => Result | Promise<Result>): Promise<Result>
  /**
   * Waits for the task's turn under a rate limit: one of `limits` in the run configuration, shared by all tasks on all
   * workers. The timeout is paused while it waits, for at most ten minutes; `options` changes that.
   */
  limit(name: string, options?: AskOptions): Promise<void>
  /**
   * Bytes from `blobs` in the run configuration, by name or SHA-256. All tasks of a worker share them: do not write to
   * them. The timeout is paused until they arrive. See docs/blobs.md.
   */
  blob(name: string): Promise<Uint8Array>
  /**
   * A model from `models` in the run configuration, as a language model of the AI SDK: pass it to `generateText`. Its calls
   * share the model's limits with all tasks of the run, and are recorded as steps. See docs/models.md.
   */
  model(name: string): LanguageModel
  /** Asks a model one question, without the AI SDK. See docs/models.md. */
  generate<Output = unknown>(options: GenerateOptions<Output>): Promise<Generated<Output>>
  /**
   * Has a model continue from token ids, without a chat template. The server needs `/completions`, as vLLM and llama.cpp
   * have it.
   */
  complete(options: CompleteOptions): Promise<Completed>
}

/** How a task waits for a service, or for a limit. */
export interface AskOptions {
  /** Cancels the request when it is aborted. */
  readonly signal?: AbortSignal
  /**
   * After this many milliseconds the request fails with `REQUEST_TIMEOUT`. Default: ten minutes if the clock stands,
   * otherwise no limit.
   */
  readonly limitMs?: number
  /** `'give'`: other tasks may use its slot while it waits. Default: `'keep'`. */
  readonly slot?: 'keep' | 'give'
  /** `'runs'`: the wait counts toward `timeoutMs`. Default: `'stands'`. */
  readonly clock?: 'stands' | 'runs'
}

/** `ctx.runTask`: runs sub-tasks on any worker of the run. */
export interface RunSubTask {
  <A extends AnyAgent>(task: TaskFor<A>): Promise<TaskResponse<AnswerOf<A>>>
  <List extends readonly AnyAgent[]>(tasks: TasksFor<List>): Promise<Map<string, TaskResponse<AnswerOf<List[number]>>>>
}

/** The task as its agent sees it. */
export interface TaskInfo {
  /** The task's id. */
  readonly id: string
  /** The `tools` of the task. */
  readonly tools?: readonly string[]
  /** The `metadata` of the task. */
  readonly metadata?: Readonly<Record<string, unknown>>
  /** The group of the task. */
  readonly groupId?: string
  /** With `rollouts`: the id of the original task, and the number of this rollout, from 1. */
  readonly rollout?: { readonly of: string; readonly number: number }
}

/** What `setup` of an agent gets, once per worker. */
export interface SetupContext {
  /** Aborted when the driver closes the connection. A worker that is killed or replaced gets no notice. */
  readonly signal: AbortSignal
  /**
   * Bytes from `blobs` in the run configuration, by SHA-256. Put the hash into the agent's params: a setup serves tasks of
   * many runs, which may use one name for different bytes.
   */
  blob(sha256: string): Promise<Uint8Array>
}

/** What `defineAgent` takes. */
export interface AgentDefinition<Input, Answer, Params, State, Name extends string> {
  /** The agent's name, unique in its module. */
  readonly name: Name
  /**
   * Plain data that is sent to the workers. Put values that vary at run time here: a closure has the worker's value, not
   * the driver's.
   */
  readonly params?: Params
  /** Runs once per worker and params, before the first task. Its result is `ctx.state`. */
  setup?(params: Params, ctx: SetupContext): State | Promise<State>
  /** Does the work. The answer is what it returns, or what its promise resolves to. */
  run(input: Input, ctx: Context<Params, State>): Answer
  /**
   * Grades the agent's answers, unless the task or the run has a grader. A function runs in a worker and may use
   * `sample.groundTruth`. See docs/evaluation.md.
   */
  readonly grade?: Grader | GradeFunction<NoInfer<Input>, Awaited<NoInfer<Answer>>, unknown>
  /**
   * The URL of the module that workers import to find this agent, such as `import.meta.url`. Default: the module of the
   * call.
   */
  readonly module?: string | URL
  /** The policy of an agent that is made of one, so that a training finds it. */
  readonly [POLICY]?: Policy
}

export declare const TYPES: unique symbol

/** A defined agent: what tasks refer to. Workers import its module and find it by name. */
export interface Agent<Input = never, Answer = unknown, Params = unknown, Name extends string = string> {
  readonly name: Name
  readonly params: Params
  /** A task for this agent; without an input, for an agent that needs none. */
  task(...none: NoInput<Input>): TaskLike<Agent<Input, Answer, Params, Name>>
  task(input: Input, options?: TaskOptions): TaskLike<Agent<Input, Answer, Params, Name>>
  /** The same agent with other params. */
  withParams(params: Params): Agent<Input, Answer, Params, Name>
  /** How workers find it. */
  readonly ref: AgentRef
  /** How its answers are graded. */
  readonly grader?: Grader | undefined
  /** Only for the compiler: the types of its input and its answer. */
  readonly [TYPES]?: (input: Input) => Answer
}

/**
 * The arguments of `task()`: none if the input may be undefined. With the input `any` there is one argument: otherwise agents
 * that need an input would not fit `AnyAgent`.
 */
export type NoInput<Input> = 0 extends 1 & Input ? [input: Input] : undefined extends Input ? [] : [input: Input]

/** An agent with any input and any answer. */
// biome-ignore lint/suspicious/noExplicitAny: an agent of whatever types, for constraints
export type AnyAgent = Agent<any, any, any, string>
/** The type of an agent's input. */
export type InputOf<A> = A extends { readonly [TYPES]?: (input: infer Input) => unknown } ? Input : never
/** The type of an agent's answer. */
export type AnswerOf<A> = A extends { readonly [TYPES]?: (input: never) => infer Answer } ? Answer : never

/** Where an agent's code is. This reference is sent to workers, not the code. */
export interface AgentRef {
  readonly name: string
  readonly module: string
  /** Differs when driver and worker evaluated different definitions under one name. Undefined: cannot be compared. */
  readonly fingerprint: string | undefined
}

/**
 * Defines an agent. Call it at the top level of a module, above the first `await Runners.…` of a script:
 * workers import that module and find the agent by its name.
 *
 * @example
 * const shout = defineAgent({ name: 'shout', run: async (input: string) => input.toUpperCase() })
 * const response = await Runners.runTask(shout.task('hello'))
 */
export function defineAgent<Input, Answer, Params = undefined, State = undefined, const Name extends string = string>(
  definition: AgentDefinition<Input, Answer, Params, State, Name>,
): Agent<Input, Awaited<Answer>, Params, Name> {
  return defineMadeAgent(definition, [])
}

/** Defines an agent whose `run` is code of this package. `made`: the user's code in it, which is part of the fingerprint. */
export function defineMadeAgent<Input, Answer, Params, State, const Name extends string>(
  definition: AgentDefinition<Input, Answer, Params, State, Name>,
  made: readonly unknown[],
): Agent<Input, Awaited<Answer>, Params, Name> {
  checkNode()
  refuseBundled()
  checkDefinition(definition)
  const { name, grade } = definition
  const module = moduleOf(definition.module, `defineAgent: agent '${name}'`)
  const ref = register(definition as RunnableDefinition, module, [definition.run, definition.setup, ...made])
  const grader = grade && graderOfAgent(name, grade as Grader | GradeFunction, module)
  return makeAgent(ref, definition.params as Params, grader) as Agent<Input, Awaited<Answer>, Params, Name>
}

/** A definition as the worker runs it. */
export type RunnableDefinition = AgentDefinition<unknown, unknown, unknown, unknown, string>

function makeAgent(ref: AgentRef, params: unknown, grader: Grader | undefined): AnyAgent {
  const agent: AnyAgent = {
    name: ref.name,
    params,
    ref,
    ...(grader && { grader }),
    task: (input?: unknown, options?: TaskOptions) =>
      options === undefined ? { input, agent } : { ...options, input, agent },
    withParams: (other) => makeAgent(ref, other, grader),
  }
  return agent
}

export function isAgent(value: unknown): value is AnyAgent {
  if (typeof value !== 'object' || value === null) return false
  const ref = (value as Partial<AnyAgent>).ref
  return typeof ref === 'object' && ref !== null && typeof ref.module === 'string' && typeof ref.name === 'string'
}

function checkDefinition(definition: unknown): asserts definition is RunnableDefinition {
  const wrong = (what: string) => {
    throw new ManyworldsError('AGENT_INVALID', `defineAgent: ${what}`)
  }
  if (typeof definition !== 'object' || definition === null)
    return wrong('give one object: defineAgent({ name: "…", run: async (input, ctx) => … })')
  const known = ['name', 'params', 'setup', 'run', 'grade', 'module']
  const { name, run, setup, grade } = definition as Record<string, unknown>
  if (typeof name !== 'string' || name === '') return wrong('`name` must be a non-empty string')
  if (typeof run !== 'function') return wrong(`\`run\` of agent '${name}' must be a function, it is ${describe(run)}`)
  if (setup !== undefined && typeof setup !== 'function')
    return wrong(`\`setup\` of agent '${name}' must be a function, it is ${describe(setup)}`)
  if (grade !== undefined && typeof grade !== 'function' && !isGrader(grade))
    return wrong(`\`grade\` of agent '${name}' must be a function or a grader, it is ${describe(grade)}`)
  const unknown = Object.keys(definition).filter((key) => !known.includes(key))
  if (unknown.length > 0)
    return wrong(
      `unknown key '${unknown[0]}' in agent '${name}'; allowed: ${known.join(', ')}. Data for the agent goes into \`params\``,
    )
}

const describe = (value: unknown) => (value === null ? 'null' : typeof value)
