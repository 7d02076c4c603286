import { REDACTED } from '../redaction/forms.ts'

/**
 * Names of fields and URL parameters whose values are secrets. Not every name with `token` or `key`: `max_tokens`,
 * `tokenizer` and `prompt_cache_key` are none.
 */
const SECRET_NAME =
  /api[_-]?key|secret|passw(or)?d|passphrase|credential|authorization|bearer|cookie|private[_-]?key|(access|auth|id|refresh|session|api|bearer)[_-]?token|^(auth|key|token|signature|sig)$|(?<!cache)[_-]key$/i

export const isSecretName = (name: string): boolean => SECRET_NAME.test(name)

const MAX_DEPTH = 32

/** A copy in which texts under names of secrets are replaced; the value itself if there are none. */
export function withoutSecretFields<T>(value: T): T {
  return without(value, 0) as T
}

function without(value: unknown, depth: number): unknown {
  if (typeof value !== 'object' || value === null || depth > MAX_DEPTH) return value
  if (Array.isArray(value)) {
    const items = value.map((item) => without(item, depth + 1))
    return items.some((item, index) => item !== value[index]) ? items : value
  }
  let copy: Record<string, unknown> | undefined
  for (const [name, inner] of Object.entries(value)) {
    const clean = typeof inner === 'string' && inner !== '' && isSecretName(name) ? REDACTED : without(inner, depth + 1)
    if (clean === inner) continue
    copy ??= { ...value }
    copy[name] = clean
  }
  return copy ?? value
}

/** The texts under names of secrets. */
export function secretTextsIn(value: unknown, depth = 0): string[] {
  if (typeof value !== 'object' || value === null || depth > MAX_DEPTH) return []
  return Object.entries(value).flatMap(([name, inner]) =>
    typeof inner === 'string' ? (isSecretName(name) ? [inner] : []) : secretTextsIn(inner, depth + 1),
  )
}
