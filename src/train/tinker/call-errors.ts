import { type ErrorCode, ManyworldsError } from '../../errors.ts'
import { type Failure, isRetryable } from '../../models/failures.ts'
import { duration } from '../../text/quantities.ts'
import type { TinkerSettings } from './settings.ts'

/** The server did nothing and never will: repeating the call has the same result. */
export class TinkerRefusal extends ManyworldsError {
  readonly status: number | undefined

  constructor(code: ErrorCode, message: string, status?: number) {
    super(code, message)
    this.status = status
  }
}

/** The error of a call that is not retried, or was retried for too long. */
export function failedCall(
  { apiKeyEnv, baseURL }: TinkerSettings,
  call: string,
  failure: Failure,
  tried: { readonly count: number; readonly ms: number },
): ManyworldsError {
  const { kind, status, message } = failure
  const answer = status === undefined ? message : `HTTP ${status}, ${message}`
  if (status === 402) return refusedKey(`Tinker requires payment (${answer}); check the billing of your Tinker account`)
  if (kind === 'authentication')
    return refusedKey(`Tinker at ${baseURL} refused the API key in ${apiKeyEnv} for ${call} (${answer}); check the key`)
  const often = tried.count > 1 ? ` after ${tried.count} attempts in ${duration(tried.ms)}` : ''
  const words = `Tinker at ${baseURL} failed at ${call}${often}: ${answer}`
  return isRetryable(failure)
    ? new ManyworldsError('LEARNER_FAILED', words)
    : new TinkerRefusal('LEARNER_FAILED', words, status)
}

const refusedKey = (words: string) => new TinkerRefusal('MODEL_AUTHENTICATION', words)

/** `queue`: the last queue status of the service. */
export function lateResult({ timeoutMs }: TinkerSettings, operation: string, queue: string): ManyworldsError {
  const state = queue === '' ? '' : ` (last queue status: ${queue})`
  return new ManyworldsError(
    'LEARNER_FAILED',
    `Tinker returned no result for ${operation} within ${duration(timeoutMs)}${state}; increase \`timeoutMs\``,
  )
}

export const unexpectedAnswer = (call: string, found: string): ManyworldsError =>
  new ManyworldsError('LEARNER_FAILED', `Tinker answered ${call} with ${found}; check that \`baseURL\` is its address`)
