import type { AskOptions } from '../agent.ts'
import { ManyworldsError } from '../errors.ts'
import type { Packed } from '../protocol/messages.ts'
import { lastPackedSize, NotPackable, pack } from '../protocol/pack.ts'
import { type Asking, DEFAULT_LIMIT_MS } from './requests.ts'

const MAX_NAME_CHARS = 256

/** What was given to `ctx.ask()` and its like, checked. */
export function askingOf(service: string, question: unknown, options: AskOptions = {}, kind: Asking['kind']): Asking {
  if (typeof service !== 'string' || service === '' || service.length > MAX_NAME_CHARS)
    throw new TypeError(`ctx.ask(): a service is named by a text of 1 to ${MAX_NAME_CHARS} characters`)
  const { signal, slot = 'keep', clock = 'stands' } = options
  const limitMs = options.limitMs ?? (clock === 'stands' ? DEFAULT_LIMIT_MS : Number.POSITIVE_INFINITY)
  if (!(limitMs > 0)) throw new TypeError(`ctx.ask(): limitMs must be more than 0, it is ${String(limitMs)}`)
  if (slot !== 'keep' && slot !== 'give') throw new TypeError("ctx.ask(): slot must be 'keep' or 'give'")
  if (clock !== 'stands' && clock !== 'runs') throw new TypeError("ctx.ask(): clock must be 'stands' or 'runs'")
  const body = packed(question, `the question to service '${service}'`)
  return {
    service,
    kind,
    slot,
    clock,
    limitMs: Math.min(limitMs, MAX_TIMER_MS),
    signal,
    body,
    size: lastPackedSize(body),
  }
}

/** Timers cannot wait longer. */
const MAX_TIMER_MS = 2 ** 31 - 1

/** What was done once, ready to be handed in. */
export function packedResult(name: string, result: unknown): { value: Packed; size: number } {
  const value = packed(result, `the result of ctx.once('${name}')`)
  return { value, size: lastPackedSize(value) }
}

function packed(value: unknown, what: string): Packed {
  try {
    return pack(value)
  } catch (error) {
    if (!(error instanceof NotPackable)) throw error
    throw new ManyworldsError('VALUE_NOT_SERIALISABLE', `${what} cannot be sent: ${error.message}; give plain data`)
  }
}
