/** Reports what is wrong with a value, with its path. Reports nothing if the value is valid. */
export type Check = (value: unknown, place: string, say: (wrong: string) => void) => void

/** A check of one value. `what` follows "must be". */
const leaf =
  (what: string, isRight: (value: unknown) => boolean): Check =>
  (value, place, say) => {
    if (!isRight(value)) say(`\`${place}\` must be ${what}`)
  }

export const text = leaf('a text', (value) => typeof value === 'string')
/** NaN and infinities count as numbers here; other checks judge them. */
export const number = leaf('a number', (value) => typeof value === 'number')
export const whole = leaf('a whole number from 0', (value) => Number.isSafeInteger(value) && (value as number) >= 0)
export const flag = leaf('true or false', (value) => typeof value === 'boolean')
export const textOrNumber = leaf(
  'a text or a number',
  (value) => typeof value === 'string' || typeof value === 'number',
)
export const int32 = leaf('an Int32Array', (value) => value instanceof Int32Array)
export const float64 = leaf('a Float64Array', (value) => value instanceof Float64Array)
export const anything: Check = () => {}

export const oneOf = (...names: readonly string[]): Check =>
  leaf(`one of ${names.map((name) => `'${name}'`).join(', ')}`, (value) => names.includes(value as string))

export const orNull =
  (check: Check): Check =>
  (value, place, say) => {
    if (value !== null) check(value, place, say)
  }

/** The value may be left out. */
export const maybe =
  (check: Check): Check =>
  (value, place, say) => {
    if (value !== undefined) check(value, place, say)
  }

export const list =
  (item: Check): Check =>
  (value, place, say) => {
    if (!Array.isArray(value)) return say(`\`${place}\` must be a list`)
    for (let i = 0; i < value.length; i++) item(value[i], `${place}[${i}]`, say)
  }

type Fields = Readonly<Record<string, Check>>

/** Other fields than these are allowed. */
export const object = (fields: Fields): Check => {
  const checks = Object.entries(fields)
  return (value, place, say) => {
    if (!isFields(value)) return say(place === '' ? 'it must be an object' : `\`${place}\` must be an object`)
    for (const [field, check] of checks) check(value[field], within(place, field), say)
  }
}

/** An object with any keys. */
export const record =
  (item: Check): Check =>
  (value, place, say) => {
    if (!isFields(value)) return say(`\`${place}\` must be an object`)
    for (const [key, one] of Object.entries(value)) item(one, within(place, key), say)
  }

/** An object whose field `kind` selects its check. */
export const byKind =
  (kinds: Readonly<Record<string, Check>>): Check =>
  (value, place, say) => {
    if (!isFields(value)) return say(`\`${place}\` must be an object`)
    const kind = String(value.kind)
    if (Object.hasOwn(kinds, kind)) kinds[kind]!(value, place, say)
    else say(`\`${place}.kind\` must be one of ${Object.keys(kinds).join(', ')}`)
  }

const isFields = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

const within = (place: string, field: string) => (place === '' ? field : `${place}.${field}`)
