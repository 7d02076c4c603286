import type { TaskError } from '../errors.ts'
import { currentCode } from '../renamed-codes.ts'
import { errorFromPlain, type PlainError, plainError } from '../response.ts'
import { isFields, isText } from './stored-shapes.ts'
import { type Encoded, encode } from './values.ts'

/** Error classes that v8.deserialize restores. */
const KNOWN = { Error, EvalError, RangeError, ReferenceError, SyntaxError, TypeError, URIError } as const

interface StoredError extends PlainError {
  /** The class of the thrown error, if it has no other properties. The error is then rebuilt from the fields here. */
  readonly thrown?: keyof typeof KNOWN
}

/** Encodes an error. Most causes are plain Errors, which this stores as JSON rather than as v8 bytes. */
export function encodeError(error: TaskError): Encoded {
  const { cause, ...rest } = plainError(error)
  const thrown = classOf(cause, error)
  return encode(thrown === undefined ? plainError(error) : { ...rest, thrown })
}

/** Throws if the stored value is not an error. */
export function decodeError(stored: unknown): TaskError {
  if (!isStoredError(stored)) throw new Error('the error of a response has the wrong shape')
  const { thrown, ...rest } = stored
  const plain = { ...rest, code: currentCode(rest.code) }
  if (thrown === undefined) return errorFromPlain(plain)
  const cause = new KNOWN[thrown](plain.message)
  Object.defineProperty(cause, 'stack', { value: plain.stack, configurable: true, writable: true })
  return errorFromPlain({ ...plain, cause })
}

function isStoredError(stored: unknown): stored is StoredError {
  if (!isFields(stored)) return false
  const { code, name, message, stack, thrown } = stored
  return (
    [code, name, message].every(isText) &&
    (stack === undefined || isText(stack)) &&
    (thrown === undefined || (typeof thrown === 'string' && Object.hasOwn(KNOWN, thrown)))
  )
}

function classOf(cause: unknown, { message, stack }: TaskError): StoredError['thrown'] {
  if (!(cause instanceof Error) || cause.message !== message || cause.stack !== stack || 'cause' in cause)
    return undefined
  if (Object.keys(cause).length > 0 || !Object.hasOwn(KNOWN, cause.name)) return undefined
  return cause.name as StoredError['thrown']
}
