import { inspect } from 'node:util'
import { pack } from '../protocol/pack.ts'

/** Longer messages and stacks are cut: they do not help, and everything that shows or stores errors would carry them. */
const MAX_CHARS = 64 * 1024

/** What an error says. */
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
    // A getter of its own, or a proxy.
  }
  return { name: 'Error', message: `${show(thrown)} was thrown`, stack: undefined }
}

/** As much of a text as is sent. */
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

/** Small plain data as JSON. All else as Node shows it, which has an end: an array may have four thousand million places. */
function show(value: unknown): string {
  if (typeof value === 'string') return cut(`'${value}'`)
  try {
    return cut(isInline(value) ? JSON.stringify(value) : inspect(value, SHOWN))
  } catch {
    return `a value that cannot be shown (${typeof value})`
  }
}

/** Whether `pack` leaves it as it is. */
function isInline(value: unknown): boolean {
  if (typeof value !== 'object' || value === null) return false
  try {
    const packed = pack(value)
    return !(packed instanceof String || packed instanceof Uint8Array)
  } catch {
    return false
  }
}
