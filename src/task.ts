import type { AnswerOf, AnyAgent, InputOf } from './agent.ts'
import type { TaskError } from './errors.ts'
import type { TaskGrade } from './grade/grade.ts'
import type { Grader } from './grade/grader.ts'
import type { Episode } from './trajectory/episode.ts'
import type { Step } from './trajectory/step.ts'
import type { Trajectory } from './trajectory/trajectory.ts'
import type { Usage } from './trajectory/usage.ts'

/** The options of a task, besides its input and its agent. */
export interface TaskOptions {
  /** Names the task, uniquely in its run. Default: `#1`, `#2`, … by position. */
  readonly id?: string
  /** Milliseconds that an attempt may run, counted from its start in the worker. Default: the run's `timeoutMs`. */
  readonly timeoutMs?: number
  /** How often the task is tried when it fails. Default: the run's `maxAttempts`. */
  readonly maxAttempts?: number
  /** Ids of tasks in the same array that must succeed first. Their answers are in `ctx.results`. */
  readonly dependsOn?: readonly string[]
  /** Labels that a worker must have to run this task. */
  readonly requires?: readonly string[]
  /** Names of tools for the agent, which finds them in `ctx.task.tools`. */
  readonly tools?: readonly string[]
  /** The expected solution, for graders. Agents do not see it. */
  readonly groundTruth?: unknown
  /** Grades the answer. Default: the run's grader, or else the agent's. */
  readonly grade?: Grader
  /** Your own data about the task. It is stored, and the agent finds it in `ctx.task.metadata`. */
  readonly metadata?: Readonly<Record<string, unknown>>
  /**
   * The task's group. Training compares the tasks of a group with each other. The rollouts of a task form a group without
   * it.
   */
  readonly groupId?: string
  /**
   * `'never'`: if the worker dies while the task may have been running, the task is answered `crashed` and does not run
   * again. Default: `'auto'`.
   */
  readonly rerun?: 'auto' | 'never'
}

/** The id of a task without one, by its position; users' ids may not begin like this. */
export const automaticId = (index: number): string => `#${index + 1}`

/** A task as a literal: an input for an agent. */
export interface TaskLike<A extends AnyAgent = AnyAgent> extends TaskOptions {
  readonly input: InputOf<A>
  readonly agent: A
}

/** A task whose input fits its agent. For a union of agents: a union of tasks, each with its agent's input. */
export type TaskFor<A> = A extends AnyAgent ? TaskLike<A> : never

/** An array of tasks, written so that the compiler infers each task's agent and then checks the input beside it. */
export type TasksFor<List extends readonly AnyAgent[]> = { readonly [Place in keyof List]: TaskFor<List[Place]> }

/** One of a union of tasks, each with the input of its own agent, and without unknown keys. */
export type OneOf<T extends { readonly agent: AnyAgent }> = T &
  TaskFor<T['agent']> & { readonly [Unknown in Exclude<keyof T, keyof TaskLike>]: never }

/** An iterable of tasks, but not an array: arrays are checked element by element, so that the compiler shows where a mistake is. */
export type TaskIterable<T extends { readonly agent: AnyAgent }> = (
  | Iterable<T & TaskFor<T['agent']>>
  | AsyncIterable<T & TaskFor<T['agent']>>
) & { readonly length?: never }

/**
 * A task as an object: the same as the literal `{ input, agent }`, and as `agent.task(input)`.
 *
 * @example
 * const task = new Task({ input: 'tides', agent: explain, id: 'first', timeoutMs: 60_000 })
 */
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

/** How a task ended. */
export type TaskStatus = 'success' | 'failed' | 'timeout' | 'crashed' | 'cancelled'

/** What all responses have, however their task ended. */
export interface ResponseBase {
  /** The task's id. */
  readonly id: string
  /** The name of its agent. */
  readonly agentName: string
  /**
   * The steps of the last attempt, also if it failed, timed out or crashed. If the run is stored, every access reads them
   * from the store, and `JSON.stringify(response)` leaves them out: keep them in a variable if you need them twice.
   */
  readonly trajectory: readonly Step[]
  /** The number of steps, if they were removed from the store to save space. Reading them then throws `STORE_GONE`. */
  readonly removedSteps?: number
  /** The steps one by one, without blocking the event loop for long. */
  steps(): AsyncIterable<Step>
  /**
   * Everything the task did, with its sub-tasks as branches. Without a store, the input, the metadata and the sub-tasks are
   * missing. See docs/trajectories.md.
   */
  toTrajectory(): Promise<Trajectory>
  /** The sum of the tokens and costs that the steps of the last attempt reported. What all attempts of a run have spent: `RunFile.spent()`. */
  readonly usage: Usage
  /** Where the time went. */
  readonly timing: {
    /** Milliseconds from reading the task to the start of its last attempt: queues, dependencies, earlier attempts. */
    readonly queuedMs: number
    /**
     * Milliseconds that the last attempt ran, measured in the worker. If the task ended with its worker (it blocked, exited or crashed), as
     * far as is known, at least since the driver was told of its start. 0: it did not run, or its run time is unknown; percentiles leave it out.
     */
    readonly runMs: number
    /** The part of `runMs` that does not count toward `timeoutMs`, because the task waited for the driver. */
    readonly waitedMs: number
  }
  /** The number of attempts that count. A rerun after another task's crash does not. */
  readonly attempts: number
  /** The worker of the last attempt; undefined if the task never started. */
  readonly worker: WorkerName | undefined
  /** What the task printed with `console.*` and `ctx.log`, line by line. */
  readonly logs: readonly string[]
  /** `true`: the response comes from an earlier session of the run, and nothing ran. */
  readonly restored: boolean
  /** The task's group: its `groupId` or, with `rollouts`, the id of the original task. */
  readonly groupId?: string
  /** With `rollouts`: the number of this rollout, from 1. */
  readonly rollout?: number
  /** How the episode ended, for agents in environments. See docs/environments.md. */
  readonly episode?: Episode
  /** How good the answer is, if a grader graded it. See docs/evaluation.md. */
  readonly grade?: TaskGrade
  /**
   * A hash of what the agent saw and did. With the same seed it is equal on every engine, whatever dies on the way. See
   * docs/trajectories.md.
   */
  readonly digest?: string
}

/** The worker that ran a task. */
export interface WorkerName {
  /** Such as `local-3`. */
  readonly id: string
  /** The host name of its machine. */
  readonly host: string
  /** Its process id, if the engine knows it. */
  readonly pid: number | undefined
}

/** How a task ended. Look at `success` (or `status`) first; TypeScript then knows which of `answer` and `error` exists. */
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
