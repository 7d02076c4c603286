import { REDACTED } from '../redaction/forms.ts'

/**
 * Names of fields and URL parameters whose values are secrets. Not every name with `token` or `key`: `max_tokens`,
 * `tokenizer`, `routing_key` and `prompt_cache_key` are none.
 */
const SECRET_NAME =
  /api[_-]?key|secret|passw(or)?d|passphrase|credential|authorization|bearer|cookie|private[_-]?key|(access|auth|id|refresh|session|api|bearer)[_-]?token|^(auth|key|token|signature|sig)$|(access|auth|encryption|signing|subscription)[_-]?key$/i

export const isSecretName = (name: string): boolean => SECRET_NAME.test(name)

const MAX_DEPTH = 32

/** Their fields are names of a JSON schema, which have descriptions as values. */
const SCHEMA_NAMES = new Set(['properties', 'patternProperties', '$defs', 'definitions'])

/** Where a value is: below the name of a secret; directly below one of SCHEMA_NAMES. */
interface Below {
  readonly secret: boolean
  readonly schema: boolean
}
const NOTHING: Below = { secret: false, schema: false }

const below = (above: Below, container: object, name: string): Below =>
  Array.isArray(container)
    ? above
    : { secret: above.secret || (!above.schema && isSecretName(name)), schema: SCHEMA_NAMES.has(name) }

/** A copy in which all texts below names of secrets are replaced; the value itself if there are none. */
export function withoutSecretFields<T>(value: T): T {
  return without(value, NOTHING, 0) as T
}

function without(value: unknown, above: Below, depth: number): unknown {
  if (typeof value === 'string') return above.secret && value !== '' ? REDACTED : value
  if (typeof value !== 'object' || value === null || depth > MAX_DEPTH) return value
  let copy: Record<string, unknown> | undefined
  for (const [name, inner] of Object.entries(value)) {
    const clean = without(inner, below(above, value, name), depth + 1)
    if (clean === inner) continue
    copy ??= (Array.isArray(value) ? [...value] : { ...value }) as Record<string, unknown>
    copy[name] = clean
  }
  return copy ?? value
}

/** All texts below names of secrets. */
export function secretTextsIn(value: unknown, above: Below = NOTHING, depth = 0): string[] {
  if (typeof value === 'string') return above.secret ? [value] : []
  if (typeof value !== 'object' || value === null || depth > MAX_DEPTH) return []
  return Object.entries(value).flatMap(([name, inner]) => secretTextsIn(inner, below(above, value, name), depth + 1))
}
