import { LEAST_SECRET_CHARS, REDACTED } from './forms.ts'
import { Redactor } from './redactor.ts'

/** A value, or a pattern of values: `redact` of a run configuration. */
export type Secret = string | RegExp

/** Why this cannot be redacted; undefined: it can. */
export function whyNotSecret(secret: unknown): string | undefined {
  if (typeof secret === 'string')
    return secret.length < LEAST_SECRET_CHARS
      ? `must have at least ${LEAST_SECRET_CHARS} characters: a shorter value would be found in innocent text`
      : undefined
  if (!(secret instanceof RegExp)) return 'must be a string or a regular expression'
  if (secret.sticky) return 'must not have the flag y, with which it is found only at the beginning'
  const pattern = globalOf(secret)
  if (pattern.test('')) return 'must not match the empty text'
  pattern.lastIndex = 0
  return pattern.test(REDACTED) ? `must not match ${REDACTED}, which stands in the place of what it matches` : undefined
}

/** `values`: secrets that the run has by itself, such as the keys of its models. Undefined: it has none. */
export const redactorOf = (redact: readonly Secret[], values: readonly string[] = []): Redactor | undefined =>
  Redactor.of({
    values: [...values, ...redact.filter((secret) => typeof secret === 'string')],
    patterns: redact.filter((secret) => secret instanceof RegExp).map(globalOf),
  })

/** A copy of its own, which remembers nothing: `lastIndex` of the user's is the user's. */
const globalOf = ({ source, flags }: RegExp): RegExp => new RegExp(source, flags.includes('g') ? flags : `${flags}g`)
