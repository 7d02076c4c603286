import { ManyworldsError } from '../errors.ts'
import { Problem } from '../network/http-problem.ts'

export const badRequest = (message: string): Problem => new Problem(400, 'BAD_REQUEST', message)

/** Error codes caused by the request; all others are server errors. */
const REQUEST_ERRORS: ReadonlySet<string> = new Set([
  ...['CONFIG_INVALID', 'TASK_INVALID', 'TASK_DUPLICATE_ID', 'INPUT_NOT_SERIALIZABLE', 'MODEL_UNKNOWN'],
])

/** Converts any error to an error response. */
export function problemOf(error: unknown): Problem {
  if (error instanceof Problem) return error
  if (!ManyworldsError.is(error)) return new Problem(500, 'INTERNAL', (error as Error)?.message ?? String(error))
  return new Problem(REQUEST_ERRORS.has(error.code) ? 400 : 500, error.code, error.message, { cause: error })
}
