import { didYouMean } from '../did-you-mean.ts'
import { ManyworldsError } from '../errors.ts'
import type { ErrorItem, Packed } from '../protocol/messages.ts'
import { pack } from '../protocol/pack.ts'
import { wordsOf } from '../text/thrown.ts'

const NAMES_SHOWN = 20

export function unknownService(name: string, names: readonly string[]): Packed {
  const more = names.length > NAMES_SHOWN ? ` and ${names.length - NAMES_SHOWN} more` : ''
  const there = names.length === 0 ? 'the run has none' : `the run has ${names.slice(0, NAMES_SHOWN).join(', ')}${more}`
  const hint = `${didYouMean(name, names)}; ${there}. Add it to \`services\` in the run configuration`
  return pack({ code: 'SERVICE_UNKNOWN', message: `there is no service '${name}'${hint}` })
}

export const oneWasAsked = (name: string) =>
  new ManyworldsError('SERVICE_FAILED', `service '${name}' returned an async iterable: ask it with ctx.askStream()`)

export const notKept = (name: string) =>
  new ManyworldsError(
    'SERVICE_FAILED',
    `service '${name}' is durable and returned an async iterable; only single answers can be stored`,
  )

/** The error of a task that cannot go on, because what it needs is not available to any task; undefined: it is another error. */
export const unavailableIn = (error: unknown): ErrorItem | undefined =>
  ManyworldsError.is(error) && error.code === 'MODEL_UNAVAILABLE'
    ? { code: error.code, name: 'AbortError', message: error.message, stack: undefined }
    : undefined

/** Errors of a user's service are already ManyworldsErrors here: see `user-services.ts`. */
export function asError(error: unknown, name: string): Packed {
  if (ManyworldsError.is(error)) return pack({ code: error.code, message: error.message })
  return pack({ code: 'SERVICE_FAILED', message: `service '${name}' failed: ${wordsOf(error).message}` })
}
