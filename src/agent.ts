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

// By a name: a process may hold two copies of this package.
export const POLICY: unique symbol = Symbol.for('manyworlds.policy') as never

/** What an agent's `run` is given besides its input. */
export interface Context<Params = unknown, State = unknown> {
  /** Aborted when the task times out or is cancelled: pass it to `fetch` and friends. */
  readonly signal: AbortSignal
  /** 1 for the first attempt. */
  readonly attempt: number
  /** The same for every attempt and rerun of this task: give it to services that can tell a repeat from a new request. */
  readonly idempotencyKey: string
  readonly task: TaskInfo
  /** The driver's params, whatever the worker's own evaluation of the module came to. */
  readonly params: Params
  /** What `setup` returned in this worker. */
  readonly state: State
  /** Keeps a line with this task; `console.*` does the same. */
  log(...values: unknown[]): void
  /**
   * A number in [0, 1) that depends on the run's seed, the task and its rollout only, so that a rerun draws the same ones,
   * on every engine.
   */
  random(): number
  /**
   * A source of random numbers by its name, which does not depend on what is drawn from `random` or from others: draw
   * delays from `randomStream('latency')`, and the agent's choices stay the same with and without them. The same name gives
   * the same source, which goes on.
   */
  randomStream(name: string): () => number
  /**
   * Records a step of the trajectory; it is kept even if the task later fails, times out or takes its worker down.
   * Await it if you record megabytes: it waits while the driver has more to store than the disk can take.
   */
  step(record: StepRecord): Promise<void>
  /** With `sequenceDependent`: the answer of the task before. */
  readonly previous: unknown
  /** With `dependsOn`: the answers of those tasks, by id. */
  readonly results: ReadonlyMap<string, unknown>
  /** Runs tasks as sub-tasks of this one, on any worker; this task's slot is free for others while it waits. */
  runTask: RunSubTask
  /**
   * Asks a service of the driver, one of `services` in the run configuration. While the task waits for the answer it keeps its
   * slot, and its timeout is stopped, for ten minutes at most; `options` can change that. See docs/services.md.
   */
  ask<Answer = unknown>(service: string, question?: unknown, options?: AskOptions): Promise<Answer>
  /** The same for a service that returns an async iterable. Leaving the loop ends the request. */
  askStream<Part = unknown>(service: string, question?: unknown, options?: AskOptions): AsyncIterableIterator<Part>
  /**
   * Does something that must not be repeated, such as a payment: calls `make`, and stores its result before it returns it. If
   * this attempt is run again, because its worker or the driver died, it returns the stored result and does not call `make`.
   * `name` and `question` identify the work. Called twice with the same ones, it is done twice.
   */
  once<Result>(name: string, question: unknown, make: () => Result | Promise<Result>): Promise<Result>
  /**
   * Waits until the task may do something of which there is a limit: one of `limits` in the run configuration, which all tasks on
   * all workers share. Its timeout is stopped while it waits, for ten minutes at most; `options` can change that.
   */
  limit(name: string, options?: AskOptions): Promise<void>
  /**
   * Bytes that the run brings to its workers: one of `blobs` of the run configuration, by its name or its SHA-256. A worker has
   * them once, for all its tasks: do not write to them. Its time-out stands still until they are there.
   */
  blob(name: string): Promise<Uint8Array>
  /**
   * A model of the run configuration's `models`, by its name, as a language model of the AI SDK: give it to `generateText` and the like.
   * Its calls share the model's limits with all tasks of the run, and are steps of this task. See docs/models.md.
   */
  model(name: string): LanguageModel
  /** Asks a model one question. The AI SDK is not needed for that. */
  generate<Output = unknown>(options: GenerateOptions<Output>): Promise<Generated<Output>>
  /** Has a model go on from token ids, without a template; for servers that have `/completions`, such as vLLM and llama.cpp. */
  complete(options: CompleteOptions): Promise<Completed>
}

/** How a task waits for a service, or for a limit. */
export interface AskOptions {
  /** Takes the request back when it is aborted. */
  readonly signal?: AbortSignal
  /** The request fails with `REQUEST_TIMEOUT` after this time. Default: ten minutes if the clock stands, else no limit. */
  readonly limitMs?: number
  /** `'give'`: other tasks may run in its slot while it waits. Default `'keep'`. */
  readonly slot?: 'keep' | 'give'
  /** `'runs'`: the time it waits counts for its `timeoutMs`. Default `'stands'`. */
  readonly clock?: 'stands' | 'runs'
}

interface RunSubTask {
  <A extends AnyAgent>(task: TaskFor<A>): Promise<TaskResponse<AnswerOf<A>>>
  <List extends readonly AnyAgent[]>(tasks: TasksFor<List>): Promise<Map<string, TaskResponse<AnswerOf<List[number]>>>>
}

/** The task as its agent sees it. */
export interface TaskInfo {
  readonly id: string
  readonly tools?: readonly string[]
  readonly metadata?: Readonly<Record<string, unknown>>
  readonly groupId?: string
  /** Of a task that is run several times: the id of the task, and which of its rollouts this is, from 1. */
  readonly rollout?: { readonly of: string; readonly number: number }
}

export interface SetupContext {
  /** Aborted when the driver closes the connection. A worker that is killed or replaced gets no notice. */
  readonly signal: AbortSignal
  /**
   * Bytes that the run brings to its workers, by their SHA-256, which belongs into the params of the agent: a setup serves
   * tasks of many runs, in which a name could stand for different things.
   */
  blob(sha256: string): Promise<Uint8Array>
}

export interface AgentDefinition<Input, Answer, Params, State, Name extends string> {
  /** Unique in its module. */
  readonly name: Name
  /** Plain data that is sent to the workers: whatever varies between driver and worker belongs here, not in a closure. */
  readonly params?: Params
  /** Runs once per worker, before its first task of this agent. */
  setup?(params: Params, ctx: SetupContext): State | Promise<State>
  /** Does the work. What it returns, or resolves to, is the answer. */
  run(input: Input, ctx: Context<Params, State>): Answer
  /**
   * How its answers are graded, unless the task or the run says so: a grader, or a function, which runs in a worker and may
   * use `sample.groundTruth`. See docs/evaluation.md.
   */
  readonly grade?: Grader | GradeFunction<NoInfer<Input>, Awaited<NoInfer<Answer>>, unknown>
  /** The module that workers import to find this agent: `import.meta.url`. Only needed where the call site does not tell. */
  readonly module?: string | URL
  /** Of agents that are made of a policy: so that a training finds it. */
  readonly [POLICY]?: Policy
}

export declare const TYPES: unique symbol

/** A defined agent: what tasks refer to. Workers import its module and find it by name. */
export interface Agent<Input = never, Answer = unknown, Params = unknown, Name extends string = string> {
  readonly name: Name
  readonly params: Params
  /** A task for this agent. */
  task(input: Input, options?: TaskOptions): TaskLike<Agent<Input, Answer, Params, Name>>
  /** The same agent with other params. */
  withParams(params: Params): Agent<Input, Answer, Params, Name>
  /** How workers find it. */
  readonly ref: AgentRef
  /** How its answers are graded. */
  readonly grader?: Grader | undefined
  /** For the compiler alone: what it takes and what it answers. */
  readonly [TYPES]?: (input: Input) => Answer
}

// biome-ignore lint/suspicious/noExplicitAny: an agent of whatever types, for constraints
export type AnyAgent = Agent<any, any, any, string>
export type InputOf<A> = A extends { readonly [TYPES]?: (input: infer Input) => unknown } ? Input : never
export type AnswerOf<A> = A extends { readonly [TYPES]?: (input: never) => infer Answer } ? Answer : never

/** Where an agent's code is. This, not the code, is what travels. */
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

/** Defines an agent whose `run` is code of this package. `made` is the code of the user's in it, which may change. */
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
    task: (input, options) => (options === undefined ? { input, agent } : { ...options, input, agent }),
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
