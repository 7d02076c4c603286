/**
 * The allowed values of a message's field. A shape is a function that checks a value. It also describes its parts, so that tests
 * can generate every kind of malformed message from the same tables.
 */
export interface Shape {
  (value: unknown): boolean
  readonly parts: Parts
}

export type Parts =
  /** Without parts. `example`: a valid value. */
  | { readonly kind: 'leaf'; readonly example: unknown }
  | { readonly kind: 'optional'; readonly of: Shape }
  | { readonly kind: 'list'; readonly item: Shape }
  | { readonly kind: 'tuple'; readonly items: readonly Shape[] }
  | { readonly kind: 'object'; readonly fields: Fields }
  /** A packed value. `of`: the shape of its content, if the driver reads it. */
  | { readonly kind: 'packed'; readonly of: Shape | undefined }

export type Fields = Readonly<Record<string, Shape>>
type Test = (value: unknown) => boolean

const made = (test: Test, parts: Parts): Shape => Object.assign(test, { parts })

export const leaf = (example: unknown, test: Test): Shape => made(test, { kind: 'leaf', example })

export const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null

export const anything = leaf('anything', () => true)
export const flag = leaf(true, (value) => typeof value === 'boolean')
export const finite = leaf(0.5, (value) => Number.isFinite(value))
export const positive = leaf(1.5, (value) => typeof value === 'number' && value > 0 && value < Infinity)
/** A count, a key. */
export const whole = leaf(0, (value) => Number.isSafeInteger(value) && (value as number) >= 0)
export const lease = leaf(1, (value) => Number.isSafeInteger(value) && (value as number) >= 0)
export const atLeastOne = leaf(1, (value) => Number.isSafeInteger(value) && (value as number) >= 1)
export const sha256 = leaf('ab'.repeat(32), (value) => typeof value === 'string' && /^[0-9a-f]{64}$/.test(value))

export const text = (most: number): Shape => leaf('text', (value) => typeof value === 'string' && value.length <= most)

export const oneOf = (...names: readonly unknown[]): Shape => leaf(names[0], (value) => names.includes(value))

export const nameIn = (names: Readonly<Record<string, true>>): Shape =>
  leaf(Object.keys(names)[0], (value) => typeof value === 'string' && Object.hasOwn(names, value))

export const optional = (of: Shape): Shape =>
  made((value) => value === undefined || of(value), { kind: 'optional', of })

export const list = (item: Shape, most = Infinity): Shape =>
  made(
    (value) => {
      if (!Array.isArray(value) || value.length > most) return false
      for (let i = 0; i < value.length; i++) if (!item(value[i])) return false
      return true
    },
    { kind: 'list', item },
  )

export const tuple = (...items: readonly Shape[]): Shape =>
  made((value) => Array.isArray(value) && value.length === items.length && items.every((item, at) => item(value[at])), {
    kind: 'tuple',
    items,
  })

export function object(fields: Fields): Shape {
  const checks = Object.entries(fields)
  const test = (value: unknown) => isObject(value) && checks.every(([field, isRight]) => isRight(value[field]))
  return made(test, { kind: 'object', fields })
}

/** A shape with a hand-written `test`, for messages that come by the million; the parts describe the same. */
export const byHand = (of: Shape, test: Test): Shape => made(test, of.parts)

export const packed = (of: Shape | undefined, test: Test): Shape => made(test, { kind: 'packed', of })
