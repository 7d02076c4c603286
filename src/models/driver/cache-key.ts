import { createHash } from 'node:crypto'

/** What identifies a call. */
export interface CacheIdentity {
  /** The base URL. */
  readonly server: string
  readonly model: string
  readonly path: string
  /** The exact JSON text: messages, tools, sampling. */
  readonly body: string
  /** The seed of the run. */
  readonly seed: number
  readonly rollout: number
  /** How many times the same task made the same call before. */
  readonly occurrence: number
}

/** Part of every key. Increase it when the same call must get another key. */
const KEY_VERSION = 1

/** SHA-256 of everything that identifies a call. The order of fields in the body does not matter. */
export function cacheKey({ server, model, path, body, seed, rollout, occurrence }: CacheIdentity): Buffer {
  const canonical = canonicalJson(body)
  const kind = canonical === undefined ? 'text' : 'json'
  const call = JSON.stringify([KEY_VERSION, withoutSlash(server), model, path, seed, rollout, occurrence, kind])
  // Separated by NUL, which JSON cannot contain.
  return createHash('sha256')
    .update(`${call}\0`)
    .update(canonical ?? body)
    .digest()
}

const withoutSlash = (url: string) => (url.endsWith('/') ? url.slice(0, -1) : url)

/** Numbers with this many digits, such as 64-bit seeds, may differ and yet be equal in JavaScript. */
const LONG_NUMBER = /\d{16}/

/** The JSON with sorted keys. Undefined if it is not JSON, or parsing could make different texts equal. */
function canonicalJson(json: string): string | undefined {
  if (LONG_NUMBER.test(json)) return undefined
  try {
    return sorted(JSON.parse(json))
  } catch {
    // Not JSON, or nested too deeply for the stack.
    return undefined
  }
}

function sorted(value: unknown): string {
  if (typeof value === 'number' && !Number.isFinite(value))
    throw new RangeError('a number that overflows, such as 1e999')
  if (typeof value !== 'object' || value === null) return JSON.stringify(value)
  if (Array.isArray(value)) return `[${value.map(sorted).join(',')}]`
  const fields = Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1))
  return `{${fields.map(([key, inner]) => `${JSON.stringify(key)}:${sorted(inner)}`).join(',')}}`
}
