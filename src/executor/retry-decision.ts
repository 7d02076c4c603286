import { ManyworldsError, type TaskError, type TaskErrorCode } from '../errors.ts'
import type { ErrorItem } from '../protocol/messages.ts'
import type { TaskStatus } from '../task.ts'
import { wordsOf } from '../text/thrown.ts'
import type { TaskEntry } from './task-entry.ts'

/** Errors that another attempt would only repeat. */
const FINAL: ReadonlySet<TaskErrorCode> = new Set([
  'ANSWER_NOT_SERIALIZABLE',
  'REQUIRES_UNMET',
  'RERUN_LIMIT',
  'MODEL_UNKNOWN',
  'MODEL_INVALID_REQUEST',
  'MODEL_AUTHENTICATION',
  'MODEL_CONTENT_FILTER',
  'MODEL_CONTEXT_LENGTH',
  'CACHE_MISS',
  'REQUEST_INVALID',
  'PACKAGE_MISSING',
])

/** Attempts without `maxAttempts`; and the same if the task throws a `RetryableError` or the run has a `retryIf`. */
const UNASKED_ATTEMPTS = 1
const ASKED_ATTEMPTS = 3

/** Another attempt. */
interface Again {
  /** A wait that replaces the backoff. */
  readonly afterMs?: number | undefined
  /** The run cannot go on: the user's `retryIf` threw or returned no boolean. */
  readonly problem?: ManyworldsError
}

/** Decides whether another attempt follows; undefined: this one is final. `taskError` is made only if it is needed. */
export function decideRetry(
  entry: TaskEntry,
  status: TaskStatus,
  error: ErrorItem,
  taskError: () => TaskError,
): Again | undefined {
  const { maxAttempts, neverRerun } = entry.options
  const { retryIf } = entry.run.options
  if (FINAL.has(error.code) || (status === 'crashed' && neverRerun)) return undefined
  if (error.retryable === false) return undefined
  const isAsked = error.retryable === true || retryIf !== undefined
  if (entry.attempts >= (maxAttempts ?? (isAsked ? ASKED_ATTEMPTS : UNASKED_ATTEMPTS))) return undefined
  if (error.retryable === true) return { afterMs: error.retryAfterMs }
  if (retryIf === undefined) return {}
  const about = { taskId: entry.id, attempt: entry.attempts }
  const where = `task '${entry.id}', attempt ${entry.attempts}`
  try {
    const answer: unknown = retryIf(taskError(), about)
    if (typeof answer === 'boolean') return answer ? {} : undefined
    // An unhandled rejection would end the process before the run can report the error.
    if (answer instanceof Promise) answer.catch(() => {})
    return { problem: failed(`\`retryIf\` must return true or false, for ${where} it returned ${shown(answer)}`) }
  } catch (cause) {
    return { problem: failed(`\`retryIf\` threw for ${where}: ${wordsOf(cause).message}`, { cause }) }
  }
}

const failed = (message: string, options?: { cause: unknown }) =>
  new ManyworldsError('RETRY_IF_FAILED', message, options)

function shown(value: unknown): string {
  if (value instanceof Promise) return 'a promise; it cannot be async'
  return typeof value === 'object' && value !== null ? 'an object' : String(value).slice(0, 100)
}
