import { ARRAYS, BIG_ARRAYS, MOST_LEVELS, NotLossless } from './lossless-json.ts'
import { setField } from './set-field.ts'

/** The longest bigint; longer ones cannot be sent to workers. */
const MOST_DIGITS = 20_000

type ArrayName = keyof typeof ARRAYS

/** Throws `NotLossless` if the JSON is not the output of `toLossless`: it may come from outside. */
export const fromLossless = (json: unknown): unknown => read(json, [])

function read(json: unknown, above: object[]): unknown {
  if (typeof json !== 'object' || json === null) return json
  if (above.length > MOST_LEVELS) throw new NotLossless(`it is nested more than ${MOST_LEVELS} levels deep`)
  if (Array.isArray(json)) return readList(json, above)
  if (!Object.hasOwn(json, '$')) return readFields(json as Record<string, unknown>, above)
  const { $: mark, value } = json as Record<string, unknown>
  return readMarked(String(mark), value, above)
}

function readList(items: readonly unknown[], above: object[]): unknown[] {
  const list: unknown[] = []
  inObject(list, above, () => {
    list.length = items.length
    for (let i = 0; i < items.length; i++) if (!isEmptyPlace(items[i])) list[i] = read(items[i], above)
  })
  return list
}

const isEmptyPlace = (item: unknown) =>
  typeof item === 'object' && item !== null && Object.hasOwn(item, '$') && (item as { $: unknown }).$ === 'empty'

function readFields(fields: Readonly<Record<string, unknown>>, above: object[]): object {
  const object = {}
  inObject(object, above, () => {
    for (const key of Object.keys(fields)) setField(object, key, read(fields[key], above))
  })
  return object
}

function inObject(object: object, above: object[], fill: () => void): void {
  above.push(object)
  fill()
  above.pop()
}

function readMarked(mark: string, value: unknown, above: object[]): unknown {
  switch (mark) {
    case 'undefined':
      return undefined
    case 'NaN':
    case 'Infinity':
    case '-Infinity':
    case '-0':
      return Number(mark)
    case 'bigint':
      return readBigint(value)
    case 'Date':
      return new Date(value === null ? Number.NaN : numberIn(value, mark))
    case 'Map':
      return readMap(value, above)
    case 'Set':
      return readSet(value, above)
    case 'RegExp':
      return readRegExp(value)
    case 'Error':
      return readError(value, above)
    case 'object':
      return readFields(fieldsIn(value, mark), above)
    case 'boxed':
      return Object(read(value, above))
    case 'above':
      return readAbove(value, above)
    case 'ArrayBuffer':
      return new Uint8Array(readNumbers(value, 'Uint8Array')).buffer
    case 'DataView':
      return new DataView(new Uint8Array(readNumbers(value, 'Uint8Array')).buffer)
    default:
      return readArray(mark, value)
  }
}

function readAbove(value: unknown, above: object[]): object {
  const object = above[above.length - numberIn(value, 'above')]
  if (object === undefined) throw new NotLossless(`{"$":"above"} refers to a level that does not exist`)
  return object
}

function readMap(value: unknown, above: object[]): Map<unknown, unknown> {
  const map = new Map<unknown, unknown>()
  inObject(map, above, () => {
    for (const pair of listIn(value, 'Map')) {
      const [key, one] = listIn(pair, 'Map')
      map.set(read(key, above), read(one, above))
    }
  })
  return map
}

function readSet(value: unknown, above: object[]): Set<unknown> {
  const set = new Set<unknown>()
  inObject(set, above, () => {
    for (const one of listIn(value, 'Set')) set.add(read(one, above))
  })
  return set
}

function readBigint(value: unknown): bigint {
  if (typeof value !== 'string' || value.length > MOST_DIGITS || !/^-?\d+$/.test(value)) throw wrong('bigint')
  return BigInt(value)
}

function readRegExp(value: unknown): RegExp {
  const [source, flags] = listIn(value, 'RegExp')
  try {
    return new RegExp(String(source), String(flags))
  } catch {
    throw wrong('RegExp')
  }
}

const ERRORS: Readonly<Record<string, ErrorConstructor>> = {
  ...{ EvalError, RangeError, ReferenceError, SyntaxError, TypeError, URIError },
}

function readError(value: unknown, above: object[]): Error {
  const { name, message, stack, cause } = fieldsIn(value, 'Error')
  const known = Object.hasOwn(ERRORS, String(name)) ? ERRORS[String(name)]! : Error
  const error = new known(String(message))
  if (error.name !== name)
    Object.defineProperty(error, 'name', { value: String(name), configurable: true, writable: true })
  Object.defineProperty(error, 'stack', { value: stack, configurable: true, writable: true })
  if (cause !== undefined)
    inObject(error, above, () => {
      const value = read(cause, above)
      Object.defineProperty(error, 'cause', { value, configurable: true, writable: true })
    })
  return error
}

function readArray(mark: string, value: unknown): object {
  if (Object.hasOwn(ARRAYS, mark)) return readNumbers(value, mark as ArrayName)
  if (!Object.hasOwn(BIG_ARRAYS, mark))
    throw new NotLossless(`{"$":${JSON.stringify(mark.slice(0, 40))}} is not a known type`)
  const numbers = listIn(value, mark).map(readBigint)
  return BIG_ARRAYS[mark as keyof typeof BIG_ARRAYS].from(numbers)
}

function readNumbers(value: unknown, name: ArrayName): InstanceType<(typeof ARRAYS)[ArrayName]> {
  const list = listIn(value, name)
  const array = new ARRAYS[name](list.length)
  for (let i = 0; i < list.length; i++) {
    const number = read(list[i], [])
    if (typeof number !== 'number') throw wrong(name)
    array[i] = number
    // A number that does not fit the array would be stored as another number.
    if (!Object.is(array[i], number)) throw wrong(name)
  }
  return array
}

function listIn(value: unknown, mark: string): readonly unknown[] {
  if (!Array.isArray(value)) throw wrong(mark)
  return value
}

function fieldsIn(value: unknown, mark: string): Record<string, unknown> {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) throw wrong(mark)
  return value as Record<string, unknown>
}

function numberIn(value: unknown, mark: string): number {
  if (typeof value !== 'number') throw wrong(mark)
  return value
}

const wrong = (mark: string) => new NotLossless(`{"$":"${mark}"} has an invalid value`)
