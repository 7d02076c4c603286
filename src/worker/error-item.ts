import type { TaskErrorCode } from '../errors.ts'
import type { ErrorItem } from '../protocol/messages.ts'
import { pack } from '../protocol/pack.ts'
import { jsonPreview } from '../text/json.ts'

/** Of what was thrown and is no error, the message has no more. */
const SHOWN_CHARS = 1000

/** Whatever was thrown, in a form that can travel. */
export function errorItem(
  code: TaskErrorCode,
  thrown: unknown,
  withheldEnv: readonly string[] = [],
  prefix = '',
): ErrorItem {
  const known = code === 'TASK_THREW' ? ownCode(thrown) : code
  if (thrown instanceof Error || isErrorLike(thrown)) {
    const message = prefix + String(thrown.message) + hint(String(thrown.message), withheldEnv)
    return { code: known, name: String(thrown.name), message, stack: stackOf(thrown), ...travelling(thrown) }
  }
  return {
    code: known,
    name: 'Error',
    message: `${prefix}${show(thrown)} was thrown`,
    stack: undefined,
    ...travelling(thrown),
  }
}

/** An agent may fail with one of our own task errors, such as "all sub-agents failed"; its code is kept. */
function ownCode(thrown: unknown): TaskErrorCode {
  return (thrown as { code?: unknown })?.code === 'ALL_SUBAGENTS_FAILED' ? 'ALL_SUBAGENTS_FAILED' : 'TASK_THREW'
}

// An Error of another realm (vm, jest) is not an instance of ours.
const isErrorLike = (value: unknown): value is Error =>
  typeof value === 'object' && value !== null && 'message' in value && 'name' in value

function stackOf(error: Error): string | undefined {
  try {
    return typeof error.stack === 'string' ? error.stack : undefined
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

/** Anything can be thrown: a circle, a list of a million pages, an array of four billion empty places. */
const show = (value: unknown): string => {
  if (typeof value === 'string') return `'${value}'`
  return typeof value === 'symbol' || value === undefined ? String(value) : jsonPreview(value, SHOWN_CHARS).text
}

function hint(message: string, withheldEnv: readonly string[]): string {
  const named = withheldEnv.find((name) => message.includes(name))
  return named === undefined
    ? ''
    : ` (manyworlds does not pass ${named} to workers by itself; pass it with \`env: { ${named}: process.env.${named} }\` in the run's configuration)`
}
