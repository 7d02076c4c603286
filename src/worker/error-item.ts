import { inspect } from 'node:util'
import type { TaskErrorCode } from '../errors.ts'
import type { ErrorItem } from '../protocol/messages.ts'
import { pack } from '../protocol/pack.ts'

/** More than this of a message or a stack helps nobody, and would go through everything that shows and stores errors. */
const MAX_CHARS = 64 * 1024

/** Whatever was thrown, in a form that can travel. Never throws, whatever that is. */
export function errorItem(
  code: TaskErrorCode,
  thrown: unknown,
  withheldEnv: readonly string[] = [],
  prefix = '',
): ErrorItem {
  const item = { code: code === 'TASK_THREW' ? ownCode(thrown) : code, ...wordsOf(thrown), ...travelling(thrown) }
  return { ...item, message: prefix + item.message + hint(item.message, withheldEnv) }
}

function wordsOf(thrown: unknown): Pick<ErrorItem, 'name' | 'message' | 'stack'> {
  try {
    if (thrown instanceof Error || isErrorLike(thrown))
      return { name: cut(String(thrown.name)), message: cut(String(thrown.message)), stack: stackOf(thrown) }
  } catch {
    // A getter of its own, or a proxy.
  }
  return { name: 'Error', message: `${show(thrown)} was thrown`, stack: undefined }
}

/** As much of a text as is sent. */
const cut = (text: string): string =>
  text.length <= MAX_CHARS ? text : `${text.slice(0, MAX_CHARS)}… (${text.length - MAX_CHARS} more characters)`

/** Codes of errors that agents of this package fail with themselves. */
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
]

function ownCode(thrown: unknown): TaskErrorCode {
  try {
    const { code } = thrown as { code: TaskErrorCode }
    return OWN_CODES.includes(code) ? code : 'TASK_THREW'
  } catch {
    return 'TASK_THREW'
  }
}

// An Error of another realm (vm, jest) is not an instance of ours.
const isErrorLike = (value: unknown): value is Error =>
  typeof value === 'object' && value !== null && 'message' in value && 'name' in value

function stackOf(error: Error): string | undefined {
  try {
    return typeof error.stack === 'string' ? cut(error.stack) : undefined
  } catch {
    return undefined
  }
}

function travelling(thrown: unknown): { thrown?: unknown } {
  try {
    return { thrown: pack(thrown) }
  } catch {
    return {}
  }
}

const SHOWN = { depth: 4, maxArrayLength: 100, maxStringLength: 10_000, breakLength: Infinity, customInspect: false }

/** Small plain data as JSON. All else as Node shows it, which has an end: an array may have four thousand million places. */
function show(value: unknown): string {
  if (typeof value === 'string') return cut(`'${value}'`)
  try {
    return cut(isInline(value) ? JSON.stringify(value) : inspect(value, SHOWN))
  } catch {
    return Object.prototype.toString.call(value)
  }
}

/** Whether `pack` leaves it as it is. */
function isInline(value: unknown): boolean {
  if (typeof value !== 'object' || value === null) return false
  const packed = pack(value)
  return !(packed instanceof String || packed instanceof Uint8Array)
}

function hint(message: string, withheldEnv: readonly string[]): string {
  const named = withheldEnv.find((name) => message.includes(name))
  return named === undefined
    ? ''
    : ` (manyworlds does not pass ${named} to workers by itself; pass it with \`env: { ${named}: process.env.${named} }\` in the run's configuration)`
}
