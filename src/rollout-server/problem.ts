import { ManyworldsError } from '../errors.ts'

/** What a caller is told when a request cannot be answered: a status of HTTP, and a stable code. */
export class Problem extends Error {
  readonly status: number
  readonly code: string

  constructor(status: number, code: string, message: string, options?: ErrorOptions) {
    super(message, options)
    this.status = status
    this.code = code
  }
}

export const badRequest = (message: string): Problem => new Problem(400, 'BAD_REQUEST', message)

/** Mistakes in what was asked for; all else is not the caller's. */
const OF_THE_CALLER: ReadonlySet<string> = new Set([
  ...['CONFIG_INVALID', 'TASK_INVALID', 'TASK_DUPLICATE_ID', 'INPUT_NOT_SERIALISABLE', 'MODEL_UNKNOWN'],
])

/** Whatever was thrown, as what the caller is told. */
export function problemOf(error: unknown): Problem {
  if (error instanceof Problem) return error
  if (!ManyworldsError.is(error)) return new Problem(500, 'INTERNAL', (error as Error)?.message ?? String(error))
  return new Problem(OF_THE_CALLER.has(error.code) ? 400 : 500, error.code, error.message, { cause: error })
}
