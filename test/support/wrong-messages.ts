import { packBytes } from '../../src/protocol/pack.ts'
import { type Fields, lease as leaseShape, type Shape } from '../../src/protocol/shapes.ts'

/**
 * Every message with every wrong thing in every place, made from the tables by which messages are checked: a message or a
 * field that is added there is tried here.
 */

const LONG_TEXT = 'x'.repeat(2 * 1024 * 1024)

/** What has no business in a message, or not in most places of one. Each time anew, since some would be shared. */
export const ODD_VALUES: Readonly<Record<string, () => unknown>> = {
  undefined: () => undefined,
  null: () => null,
  true: () => true,
  'a negative number': () => -1,
  'a fraction': () => 1.5,
  NaN: () => NaN,
  infinity: () => Infinity,
  'a number that is too large': () => 2 ** 60,
  'a BigInt': () => 7n,
  'no text': () => '',
  text: () => 'odd',
  '2 MB of text': () => LONG_TEXT,
  'the name of a property of all objects': () => 'constructor',
  'an empty list': () => [],
  'an empty object': () => ({}),
  'a list of nothing': () => [null],
  'a list of lists': () => [[[]]],
  'a list with holes': () => Object.assign([], { 1: 1 }),
  'a list without an end': () => Object.assign([], { length: 4_000_000_000 }),
  'a Map': () => new Map([[1, 2]]),
  'a Set': () => new Set([1]),
  'a Date': () => new Date(Number.NaN),
  'an error': () => Object.assign(new Error('odd'), { stack: undefined }),
  'a circle': () => {
    const circle: Record<string, unknown> = {}
    circle.circle = circle
    return circle
  },
}

export const varint = (value: number): Buffer => {
  const bytes: number[] = []
  let rest = value
  for (; rest >= 0x80; rest = Math.floor(rest / 0x80)) bytes.push((rest % 0x80) | 0x80)
  return Buffer.from([...bytes, rest])
}

/** v8's bytes by hand: what no v8 would write. */
export const raw = (...parts: (string | Buffer)[]): Buffer =>
  Buffer.concat([
    packBytes(null).subarray(0, 2),
    ...parts.map((part) => (typeof part === 'string' ? Buffer.from(part, 'latin1') : part)),
  ])

/** An array that claims so many places, and has none. */
export const claiming = (places: number): Buffer =>
  Buffer.concat([Buffer.from('a'), varint(places), Buffer.from('@\0'), varint(places)])

const BYTES = {
  'no bytes': Buffer.alloc(0),
  noise: Buffer.from([1, 2, 3]),
  'bytes of another version': Buffer.from([0xff, 1, 0x30]),
  'bytes that are cut short': packBytes({ text: 'x'.repeat(100) }).subarray(0, 50),
  'bytes with more behind them': raw('00'),
  'a reference to nothing': raw('^\x63'),
  'an array of 33 million places': raw(claiming(33_000_000)),
  'many arrays of a million places': raw('A\x32', ...Array.from({ length: 50 }, () => claiming(1_000_000)), '$\0\x32'),
  'a text that is longer than all': raw('"', varint(2 ** 31)),
  'an array that is longer than all': raw('A', varint(2 ** 31)),
  'a buffer that may grow': raw('~\0', varint(2 ** 32 - 1)),
  'what is nested too deep': raw('A\x01'.repeat(5000), '0', '$\0\x01'.repeat(5000)),
  'a BigInt without an end': raw('Z', varint(2 * 1024 * 1024), Buffer.alloc(1024 * 1024, 255)),
}
const DEEP_JSON = '['.repeat(100_000) + ']'.repeat(100_000)

/** Packed values that are none, or that cost more than they weigh. */
export const ODD_PACKED: Readonly<Record<string, () => unknown>> = {
  ...Object.fromEntries(Object.entries(BYTES).map(([name, bytes]) => [name, () => new Uint8Array(bytes)])),
  'no JSON': () => new String('{'),
  'JSON that is nested too deep': () => new String(DEEP_JSON),
}

/** The body of a step is the JSON of an object; each of these is none. */
export const ODD_STEPS: readonly string[] = [
  ...['', 'null', '5', 'true', '"text"', '[]', '{', 'no JSON'],
  // One text, and not one body.
  '{"action":0},{"action":1}',
  `{"deep":${'['.repeat(5000)}${']'.repeat(5000)}}`,
]

/** Whether it can be said in this codec: the portable one would have to read the bytes of values before it can send them. */
export const isSayable = ({ what }: Wrong, codec: string): boolean =>
  codec.startsWith('v8') || !Object.keys(BYTES).some((name) => what.endsWith(` = ${name}`))

export interface Wrong {
  readonly what: string
  /** `lease`: one that the worker holds. */
  make(lease: number): unknown
}

export const wrongMessages = (table: Readonly<Record<string, Fields>>): Wrong[] =>
  Object.entries(table).flatMap(([type, fields]) =>
    inFields(fields).map((wrong) => inside(wrong, `${type}`, (value) => ({ type, ...(value as object) }))),
  )

/** Wrong values in the place of one of this shape; some may happen to be right there. */
export function wrongOnes({ parts }: Shape): Wrong[] {
  const odd = named(ODD_VALUES)
  switch (parts.kind) {
    case 'leaf':
      return odd
    case 'optional':
      return wrongOnes(parts.of)
    case 'packed':
      return [...odd, ...named(ODD_PACKED)]
    case 'list':
      return [...odd, ...wrongOnes(parts.item).map((wrong) => inside(wrong, '[0]', (value) => [value]))]
    case 'tuple': {
      const right = (lease: number) => parts.items.map((item) => exampleOf(item, lease))
      return [
        ...odd,
        { what: ' is short', make: (lease) => right(lease).slice(1) },
        { what: ' is long', make: (lease) => [...right(lease), 1] },
        ...parts.items.flatMap((item, at) =>
          wrongOnes(item).map((wrong) => inside(wrong, `[${at}]`, (value, lease) => right(lease).with(at, value))),
        ),
      ]
    }
    case 'object':
      return [...odd, ...inFields(parts.fields)]
  }
}

const inFields = (fields: Fields): Wrong[] =>
  Object.entries(fields).flatMap(([field, shape]) =>
    wrongOnes(shape).map((wrong) =>
      inside(wrong, `.${field}`, (value, lease) => ({ ...exampleOfFields(fields, lease), [field]: value })),
    ),
  )

const inside = ({ what, make }: Wrong, where: string, around: (value: unknown, lease: number) => unknown): Wrong => ({
  what: where + what,
  make: (lease) => around(make(lease), lease),
})

export const named = (makers: Readonly<Record<string, () => unknown>>): Wrong[] =>
  Object.entries(makers).map(([name, make]) => ({ what: ` = ${name}`, make }))

/** One that is right. */
export function exampleOf(shape: Shape, lease: number): unknown {
  if (shape === leaseShape) return lease
  const { parts } = shape
  switch (parts.kind) {
    case 'leaf':
      return parts.example
    case 'optional':
      return exampleOf(parts.of, lease)
    case 'packed':
      return parts.of === undefined ? 'packed' : exampleOf(parts.of, lease)
    case 'list':
      return [exampleOf(parts.item, lease)]
    case 'tuple':
      return parts.items.map((item) => exampleOf(item, lease))
    case 'object':
      return exampleOfFields(parts.fields, lease)
  }
}

const exampleOfFields = (fields: Fields, lease: number) =>
  Object.fromEntries(Object.entries(fields).map(([field, shape]) => [field, exampleOf(shape, lease)]))
