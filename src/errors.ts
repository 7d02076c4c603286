/**
 * The error model. There are two kinds of errors:
 *
 * - a caller's mistake or a broken environment is *thrown* as a `ManyworldsError`, before work starts if it can be known then;
 * - what goes wrong inside a task is a *value*: the `error` of its response, a `TaskError`.
 *
 * Both carry a stable `code`. Messages say what happened, where, and what to do next.
 */

import type { TaskResponse } from './task.ts'

/** Codes of failed model calls: of the errors that they throw, and of tasks that do not catch these errors. */
export type ModelErrorCode =
  | 'PACKAGE_MISSING'
  | 'MODEL_UNKNOWN'
  | 'MODEL_RATE_LIMIT'
  | 'MODEL_TRANSIENT'
  | 'MODEL_TIMEOUT'
  | 'MODEL_INVALID_REQUEST'
  | 'MODEL_AUTHENTICATION'
  | 'MODEL_CONTENT_FILTER'
  | 'MODEL_CONTEXT_LENGTH'
  | 'MODEL_OUTPUT_INVALID'
  | 'MODEL_MISMATCH'
  | 'MODEL_PERMIT_TIMEOUT'
  | 'MODEL_UNAVAILABLE'
  | 'CACHE_MISS'
  /** Also of other calls of a context: `ctx.ask`, `ctx.limit`, `ctx.once`. */
  | 'REQUEST_INVALID'

/** Codes of errors that are thrown at the caller. */
export type ErrorCode =
  // configuration and tasks
  | 'CONFIG_INVALID'
  | 'MODEL_NO_PRICE'
  | 'TASK_INVALID'
  | 'TASK_DUPLICATE_ID'
  | 'INPUT_NOT_SERIALIZABLE'
  | 'DEPENDENCY_UNKNOWN'
  | 'DEPENDENCY_CYCLE'
  | 'DEPENDENCY_NEEDS_ARRAY'
  | 'SYNC_UNSUPPORTED'
  | 'QUEUE_FULL'
  | 'EXECUTOR_CLOSED'
  | 'SOURCE_FAILED'
  | 'SUBTASK_TOO_DEEP'
  | 'SUBTASKS_TOO_MANY'
  | 'GRADER_INVALID'
  | 'RETRY_IF_FAILED'
  // agents and their code
  | 'AGENT_INVALID'
  | 'ENVIRONMENT_INVALID'
  | 'AGENT_REDEFINED'
  | 'AGENT_MODULE_UNKNOWN'
  | 'AGENT_IN_TEST_FILE'
  | 'AGENT_NOT_FOUND'
  | 'AGENT_NOT_SHIPPED'
  | 'AGENT_DEFINED_TOO_LATE'
  | 'AGENT_MISMATCH'
  | 'AGENT_LOAD_FAILED'
  | 'RUNNERS_IN_WORKER'
  // engines and workers
  | 'ENGINE_INVALID'
  | 'ENGINE_FAILED'
  | 'NODE_TOO_OLD'
  | 'PACKAGE_BUNDLED'
  | 'WORKER_START_FAILED'
  | 'PROTOCOL_ERROR'
  | 'NODES_UNREACHABLE'
  | 'NODE_REFUSED'
  | 'RAY_FAILED'
  | 'RAY_IMPOSSIBLE'
  | 'SPARK_FAILED'
  | 'SPARK_IMPOSSIBLE'
  | 'SPARK_UNREACHABLE'
  | 'JAVA_MISSING'
  | 'PYTHON_MISSING'
  | 'PYTHON_SETUP_FAILED'
  // services
  | 'SERVICE_UNKNOWN'
  | 'SERVICE_FAILED'
  | 'REQUEST_TIMEOUT'
  | 'VALUE_NOT_SERIALIZABLE'
  | ModelErrorCode
  | 'LIMIT_UNKNOWN'
  // blobs
  | 'BLOB_UNKNOWN'
  | 'BLOB_GONE'
  | 'BLOB_DAMAGED'
  // run files
  | 'RUN_EXISTS'
  | 'RUN_NOT_FOUND'
  | 'TASK_NOT_FOUND'
  | 'RUN_LOCKED'
  | 'RESUME_MISMATCH'
  | 'STORE_NOT_WRITABLE'
  | 'STORE_FULL'
  | 'STORE_FAILED'
  | 'STORE_CORRUPT'
  | 'NOT_A_STORE'
  | 'STORE_GONE'
  | 'STORE_NEWER'
  | 'TRAJECTORY_INVALID'
  | 'TRAJECTORY_TOO_LARGE'
  // data sets and exports
  | 'DATA_INVALID'
  | 'DATA_UNREADABLE'
  | 'EXPORT_FAILED'
  // training
  | 'ROW_INVALID'
  | 'POLICY_INVALID'
  | 'POLICY_NOT_SERVED'
  | 'LEARNER_INVALID'
  | 'LEARNER_FAILED'
  | 'TRAINING_CHANGED'
  | 'TRAINING_FAILED'
  | 'TRAINING_STOPPED'
  // bundles
  | 'BUNDLE_FAILED'
  | 'BUNDLE_NATIVE_MODULE'
  | 'BUNDLE_FILE_MISSING'
  | 'BUNDLE_LOAD_FAILED'

// Markers instead of `instanceof`: a process may hold two copies of this package, and registered symbols are shared by both.
const MARKER = Symbol.for('manyworlds.error')
const TASK_MARKER = Symbol.for('manyworlds.task-error')

const isMarked = (value: unknown, marker: symbol): boolean =>
  typeof value === 'object' && value !== null && marker in value

/**
 * Thrown when a caller made a mistake or the environment is broken. `code` is stable; the message says what to do.
 *
 * @example
 * try {
 *   await Runners.runTask(tasks)
 * } catch (error) {
 *   if (!ManyworldsError.is(error)) throw error
 *   console.error(`${error.code}: ${error.message} (${error.responses?.size ?? 0} tasks had finished)`)
 * }
 */
export class ManyworldsError extends Error {
  readonly code: ErrorCode
  /** If a run of `Runners.runTask` failed halfway: the responses of the tasks that had finished, by task id. */
  declare readonly responses?: ReadonlyMap<string, TaskResponse>
  readonly [MARKER] = true

  constructor(code: ErrorCode, message: string, options?: { cause?: unknown }) {
    super(message, options)
    this.name = 'ManyworldsError'
    this.code = code
  }

  toJSON(): object {
    return plain(this)
  }

  /** Whether the value is a ManyworldsError, also one of another copy of this package. A `TaskError` is not one. */
  static is(value: unknown): value is ManyworldsError {
    return isMarked(value, MARKER)
  }
}

/** Codes of errors that are values: the `error` of a response that did not succeed. */
export type TaskErrorCode =
  | 'TASK_THREW'
  | 'TASK_TIMEOUT'
  | 'TASK_BLOCKED_WORKER'
  | 'TASK_CANCELLED'
  | 'RUN_DEADLINE'
  | 'RUN_BUDGET'
  | 'DEPENDENCY_FAILED'
  | 'WORKER_CRASHED'
  | 'RERUN_LIMIT'
  | 'PROCESS_EXIT'
  | 'UNCAUGHT_IN_TASK'
  | 'ANSWER_NOT_SERIALIZABLE'
  | 'SETUP_FAILED'
  | 'REQUIRES_UNMET'
  | 'ALL_SUBAGENTS_FAILED'
  | 'ENVIRONMENT_FAULT'
  | 'ACTION_INVALID'
  // environments outside of this package: Python, OpenEnv
  | 'WORLD_UNAVAILABLE'
  | 'WORLD_FAILED'
  | 'WORLD_CRASHED'
  | 'WORLD_TIMEOUT'
  | 'WORLD_NOT_DETERMINISTIC'
  | 'WORLD_DISCONNECTED'
  | ModelErrorCode

/**
 * What went wrong in one task: a value, the `error` of its response. `name`, `message` and `stack` are those of the error that
 * the agent threw; `cause` is the thrown value.
 *
 * @example
 * for (const response of (await Runners.runTask(tasks)).values())
 *   if (!response.success) console.error(response.id, response.error.code, response.error.message)
 */
export class TaskError extends Error {
  readonly code: TaskErrorCode
  readonly [TASK_MARKER] = true

  constructor(code: TaskErrorCode, message: string, options?: { cause?: unknown; name?: string; stack?: string }) {
    super(message, options && 'cause' in options ? { cause: options.cause } : undefined)
    this.name = options?.name ?? 'TaskError'
    this.code = code
    this.stack = options?.stack ?? `${this.name}: ${message}`
  }

  toJSON(): object {
    return plain(this)
  }

  /** Whether the value is a TaskError, also one of another copy of this package. */
  static is(value: unknown): value is TaskError {
    return isMarked(value, TASK_MARKER)
  }
}

/** An error as plain data for `JSON.stringify`, which would otherwise keep almost nothing of it. */
function plain({ name, code, message, stack, cause }: Error & { code: string }): object {
  const reason = cause instanceof Error ? { name: cause.name, message: cause.message } : cause
  return { name, code, message, stack, ...(reason === undefined ? {} : { cause: reason }) }
}
