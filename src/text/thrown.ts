import { inspect } from 'node:util'
import { pack } from '../protocol/pack.ts'

/** Longer messages and stacks are cut, because they are sent and stored with the error and do not help anyone. */
const MAX_CHARS = 64 * 1024

/** The texts of an error. */
interface Words {
  readonly name: string
  readonly message: string
  readonly stack: string | undefined
}

/** Name, message and stack of any thrown value. Never throws. */
export function wordsOf(thrown: unknown): Words {
  try {
    if (thrown instanceof Error || isErrorLike(thrown))
      return { name: cut(String(thrown.name)), message: cut(String(thrown.message)), stack: stackOf(thrown) }
  } catch {
    // A getter or a proxy threw.
  }
  return { name: 'Error', message: `${show(thrown)} was thrown`, stack: undefined }
}

/** Cuts a long text. */
const cut = (text: string): string =>
  text.length <= MAX_CHARS ? text : `${text.slice(0, MAX_CHARS)}… (${text.length - MAX_CHARS} more characters)`

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

const SHOWN = { depth: 4, maxArrayLength: 100, maxStringLength: 10_000, breakLength: Infinity, customInspect: false }

/**
 * Small plain data as JSON; everything else as `inspect` shows it, whose output is limited: a sparse array may have four
 * billion elements.
 */
function show(value: unknown): string {
  if (typeof value === 'string') return cut(`'${value}'`)
  try {
    return cut(isInline(value) ? JSON.stringify(value) : inspect(value, SHOWN))
  } catch {
    return `a value that cannot be shown (${typeof value})`
  }
}

/** Whether `pack` does not serialize the value. */
function isInline(value: unknown): boolean {
  if (typeof value !== 'object' || value === null) return false
  try {
    const packed = pack(value)
    return !(packed instanceof String || packed instanceof Uint8Array)
  } catch {
    return false
  }
}
