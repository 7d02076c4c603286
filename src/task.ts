import type { AnswerOf, AnyAgent, InputOf } from './agent.ts'
import type { TaskError } from './errors.ts'
import type { TaskGrade } from './grade/grade.ts'
import type { Grader } from './grade/grader.ts'
import type { Episode } from './trajectory/episode.ts'
import type { Step } from './trajectory/step.ts'
import type { Trajectory } from './trajectory/trajectory.ts'
import type { Usage } from './trajectory/usage.ts'

/** What can be said about a task besides its input and its agent. */
export interface TaskOptions {
  /** Unique in its run. Left out, the task gets `#1`, `#2`, … by its place. */
  readonly id?: string
  /** Milliseconds from the moment the task starts to run, per attempt; overrides the run's. */
  readonly timeoutMs?: number
  /** How often the task may be tried; overrides the run's. */
  readonly maxAttempts?: number
  /** Ids of tasks of the same array that must succeed first; their answers are in `ctx.results`. */
  readonly dependsOn?: readonly string[]
  /** Labels that a worker must have to be given this task. */
  readonly requires?: readonly string[]
  /** Tools the agent may use (its own business; passed on in `ctx.task`). */
  readonly tools?: readonly string[]
  /** The expected solution, for graders. Agents do not see it. */
  readonly groundTruth?: unknown
  /** How its answer is graded; overrides the run's and the agent's. */
  readonly grade?: Grader
  readonly metadata?: Readonly<Record<string, unknown>>
  /** Tasks of one group are compared with each other in training. Rollouts of a task are a group by themselves. */
  readonly groupId?: string
  /** `'never'`: if the worker dies while the task may have been running, answer `crashed` rather than run it again. */
  readonly rerun?: 'auto' | 'never'
}

/** The id of a task without one, by its place; users' ids may not begin like this. */
export const automaticId = (index: number): string => `#${index + 1}`

/** A task as a literal: an input for an agent. */
export interface TaskLike<A extends AnyAgent = AnyAgent> extends TaskOptions {
  readonly input: InputOf<A>
  readonly agent: A
}

/** A task whose input fits its agent; of a union of agents, each with the input of its own. */
export type TaskFor<A> = A extends AnyAgent ? TaskLike<A> : never

/** An array of tasks, written so that the compiler infers each task's agent and then checks the input beside it. */
export type TasksFor<List extends readonly AnyAgent[]> = { readonly [Place in keyof List]: TaskFor<List[Place]> }

/** A task out of a union of tasks, each with the input of its own agent, and without keys that no task has. */
export type OneOf<T extends { readonly agent: AnyAgent }> = T &
  TaskFor<T['agent']> & { readonly [Unknown in Exclude<keyof T, keyof TaskLike>]: never }

/** What yields tasks. Not an array: those are checked element by element, where a mistake is shown at its place. */
export type TaskIterable<T extends { readonly agent: AnyAgent }> = (
  | Iterable<T & TaskFor<T['agent']>>
  | AsyncIterable<T & TaskFor<T['agent']>>
) & { readonly length?: never }

/** A task as an object; the same as the literal, for those who like `new`. */
export class Task<A extends AnyAgent = AnyAgent> implements TaskLike<A> {
  readonly input: InputOf<A>
  readonly agent: A
  declare readonly id?: string
  declare readonly timeoutMs?: number
  declare readonly maxAttempts?: number
  declare readonly dependsOn?: readonly string[]
  declare readonly requires?: readonly string[]
  declare readonly tools?: readonly string[]
  declare readonly groundTruth?: unknown
  declare readonly grade?: Grader
  declare readonly metadata?: Readonly<Record<string, unknown>>
  declare readonly groupId?: string
  declare readonly rerun?: 'auto' | 'never'

  constructor(literal: { input: InputOf<NoInfer<A>>; agent: A } & TaskOptions) {
    Object.assign(this, literal)
    this.input = literal.input
    this.agent = literal.agent
  }
}

export type TaskStatus = 'success' | 'failed' | 'timeout' | 'crashed' | 'cancelled'

interface ResponseBase {
  readonly id: string
  readonly agentName: string
  /**
   * Steps that the last attempt recorded; also there when it failed, timed out or crashed. With a run file they are read
   * from it each time, and are no part of `JSON.stringify(response)`; keep them in a variable if you need them twice.
   */
  readonly trajectory: readonly Step[]
  /** How many steps it had, if they were removed from the store to save space. Reading them then throws `STORE_GONE`. */
  readonly removedSteps?: number
  /** The steps one by one, without blocking the event loop for long. */
  steps(): AsyncIterable<Step>
  /**
   * All that the task did, with its sub-tasks as branches: see docs/trajectories.md. Without a store, what is not in the response is
   * missing: the input, the metadata, and sub-tasks.
   */
  toTrajectory(): Promise<Trajectory>
  /** Sum of what the steps reported. */
  readonly usage: Usage
  readonly timing: {
    /** Milliseconds between reading the task and its last start: queues, dependencies, earlier attempts. */
    readonly queuedMs: number
    /** Milliseconds the last attempt ran, measured in the worker. */
    readonly runMs: number
    /** How much of that its clock stood, because it waited for a service of the driver. */
    readonly waitedMs: number
  }
  /** Attempts that count. A rerun after somebody else's crash does not. */
  readonly attempts: number
  /** Where the last attempt ran; undefined when it never started. */
  readonly worker: WorkerName | undefined
  /** What the task printed (`console.*`, `ctx.log`), a line each. */
  readonly logs: readonly string[]
  /** True: it was read from the run file, and nothing ran. */
  readonly restored: boolean
  /** The group of tasks that it belongs to: its `groupId` or, with `rollouts`, the id of the task that was rolled out. */
  readonly groupId?: string
  /** Which rollout of its task it is, from 1; left out in runs without `rollouts`. */
  readonly rollout?: number
  /** How the episode ended, for agents in environments. */
  readonly episode?: Episode
  /** How good the answer is; left out where nobody grades it. */
  readonly grade?: TaskGrade
  /** A hash of what the agent saw and did: equal on every engine for the same seed, whatever dies on the way. */
  readonly digest?: string
}

export interface WorkerName {
  readonly id: string
  readonly host: string
  readonly pid: number | undefined
}

/** How a task ended. Look at `success` (or `status`) first; TypeScript then knows which of `answer` and `error` is there. */
export type TaskResponse<Answer = unknown> =
  | (ResponseBase & {
      readonly success: true
      readonly status: 'success'
      readonly answer: Answer
      readonly error?: never
    })
  | (ResponseBase & {
      readonly success: false
      readonly status: Exclude<TaskStatus, 'success'>
      readonly answer?: never
      readonly error: TaskError
    })

/** The response type of a task type. */
export type ResponseOf<T> = T extends { readonly agent: infer A } ? TaskResponse<AnswerOf<A>> : never
