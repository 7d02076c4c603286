import type { TaskErrorCode } from '../errors.ts'
import type { ErrorItem } from '../protocol/messages.ts'
import { pack } from '../protocol/pack.ts'
import { retryOf } from '../retry-errors.ts'
import { wordsOf } from '../text/thrown.ts'

/** Turns any thrown value into a form that can be sent. Never throws. */
export function errorItem(
  code: TaskErrorCode,
  thrown: unknown,
  withheldEnv: readonly string[] = [],
  prefix = '',
): ErrorItem {
  const item = {
    code: code === 'TASK_THREW' ? ownCode(thrown) : code,
    ...wordsOf(thrown),
    ...retryOf(thrown),
    ...travelling(thrown),
  }
  // Our own errors name the variable with a model's key. The driver reads it; workers don't need it.
  const advice = item.code.startsWith('MODEL_') ? '' : hint(item.message, withheldEnv)
  return { ...item, message: prefix + item.message + advice }
}

/** Codes of errors that this package's own agents throw. */
const OWN_CODES: readonly TaskErrorCode[] = [
  'ALL_SUBAGENTS_FAILED',
  'ENVIRONMENT_FAULT',
  'ACTION_INVALID',
  'WORLD_UNAVAILABLE',
  'WORLD_FAILED',
  'WORLD_CRASHED',
  'WORLD_TIMEOUT',
  'WORLD_NOT_DETERMINISTIC',
  'WORLD_DISCONNECTED',
  'MODEL_UNKNOWN',
  'MODEL_RATE_LIMIT',
  'MODEL_TRANSIENT',
  'MODEL_TIMEOUT',
  'MODEL_INVALID_REQUEST',
  'MODEL_AUTHENTICATION',
  'MODEL_CONTENT_FILTER',
  'MODEL_CONTEXT_LENGTH',
  'MODEL_OUTPUT_INVALID',
  'MODEL_MISMATCH',
  'MODEL_PERMIT_TIMEOUT',
  'MODEL_UNAVAILABLE',
  'CACHE_MISS',
  'REQUEST_INVALID',
  'PACKAGE_MISSING',
]

function ownCode(thrown: unknown): TaskErrorCode {
  try {
    const { code } = thrown as { code: TaskErrorCode }
    return OWN_CODES.includes(code) ? code : 'TASK_THREW'
  } catch {
    return 'TASK_THREW'
  }
}

function travelling(thrown: unknown): { thrown?: unknown } {
  try {
    return { thrown: pack(thrown) }
  } catch {
    return {}
  }
}

function hint(message: string, withheldEnv: readonly string[]): string {
  const named = withheldEnv.find((name) => message.includes(name))
  return named === undefined
    ? ''
    : ` (manyworlds does not pass ${named} to workers by itself; pass it with \`env: { ${named}: process.env.${named} }\` in the run's configuration)`
}
