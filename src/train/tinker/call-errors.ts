import { type ErrorCode, ManyworldsError } from '../../errors.ts'
import { type Failure, isPassing } from '../../models/failures.ts'
import { duration } from '../../text/quantities.ts'
import type { TinkerSettings } from './settings.ts'

/** Says that the server has done nothing and never will: the same call again has the same end. */
export class TinkerRefusal extends ManyworldsError {
  readonly status: number | undefined

  constructor(code: ErrorCode, message: string, status?: number) {
    super(code, message)
    this.status = status
  }
}

/** A call that is not tried again, or was tried for too long. */
export function failedCall(
  { apiKeyEnv, baseURL }: TinkerSettings,
  call: string,
  failure: Failure,
  tried: { readonly count: number; readonly ms: number },
): ManyworldsError {
  const { kind, status, message } = failure
  const said = status === undefined ? message : `HTTP ${status}, ${message}`
  if (status === 402) return refusedKey(`Tinker wants to be paid (${said}): look at the billing of your account there`)
  if (kind === 'authentication')
    return refusedKey(`Tinker refused the key in ${apiKeyEnv} at ${call} (${said}); its address is ${baseURL}`)
  const often = tried.count > 1 ? `, ${tried.count} times in ${duration(tried.ms)}` : ''
  const words = `Tinker failed at ${call}${often}: ${said}; its address is ${baseURL}`
  return isPassing(failure)
    ? new ManyworldsError('LEARNER_FAILED', words)
    : new TinkerRefusal('LEARNER_FAILED', words, status)
}

const refusedKey = (words: string) => new TinkerRefusal('MODEL_AUTHENTICATION', words)

/** `queue`: what the service said last of its queue. */
export function lateResult({ timeoutMs }: TinkerSettings, operation: string, queue: string): ManyworldsError {
  const state = queue === '' ? '' : `; the last that it said of its queue is: ${queue}`
  return new ManyworldsError(
    'LEARNER_FAILED',
    `Tinker has no result of ${operation} after ${duration(timeoutMs)}${state}. Give it more time by \`timeoutMs\``,
  )
}

export const nonsense = (call: string, found: string): ManyworldsError =>
  new ManyworldsError('LEARNER_FAILED', `Tinker answered ${call} with ${found}: is \`baseURL\` its address?`)
