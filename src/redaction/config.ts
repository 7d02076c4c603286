import { LEAST_SECRET_CHARS, REDACTED } from './forms.ts'
import { Redactor } from './redactor.ts'

/** A secret value, or a pattern of such values: `redact` of a run configuration. */
export type Secret = string | RegExp

/** Returns why the secret cannot be redacted; undefined if it can. */
export function whyNotSecret(secret: unknown): string | undefined {
  if (typeof secret === 'string')
    return secret.length < LEAST_SECRET_CHARS
      ? `must have at least ${LEAST_SECRET_CHARS} characters: a shorter value would also match ordinary text`
      : undefined
  if (!(secret instanceof RegExp)) return 'must be a string or a regular expression'
  if (secret.sticky) return 'must not have the flag y, because it would match only at the start of a text'
  const pattern = globalOf(secret)
  if (pattern.test('')) return 'must not match the empty text'
  pattern.lastIndex = 0
  return pattern.test(REDACTED) ? `must not match its own replacement, ${REDACTED}` : undefined
}

/**
 * `values`: secrets that are known without configuration, such as the keys of the run's models. Returns undefined if
 * there are no secrets.
 */
export const redactorOf = (redact: readonly Secret[], values: readonly string[] = []): Redactor | undefined =>
  Redactor.of({
    values: [...values, ...redact.filter((secret) => typeof secret === 'string')],
    patterns: redact.filter((secret) => secret instanceof RegExp).map(globalOf),
  })

/** Copies the expression, so that the `lastIndex` of the user's object does not change. */
const globalOf = ({ source, flags }: RegExp): RegExp => new RegExp(source, flags.includes('g') ? flags : `${flags}g`)
