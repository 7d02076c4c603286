import { describe, expect, test } from 'vitest'
import type { SparkType } from '../../src/engines/spark/connect/types.ts'
import { fitFor } from '../../src/engines/spark/data/fit.ts'
import { inColumn } from '../../src/engines/spark/data/misfit.ts'

/** What becomes of a value on its way to a column, and what is refused. `data-values.ts` asks a real Spark about the former. */

const of = (name: string): SparkType => ({ name }) as SparkType
const decimal = (precision: number, scale: number): SparkType => ({ name: 'decimal', precision, scale })
const array = (element: SparkType): SparkType => ({ name: 'array', element })
const map = (value: SparkType): SparkType => ({ name: 'map', key: of('string'), value })
const struct = (fields: Record<string, SparkType>): SparkType => ({
  name: 'struct',
  fields: Object.entries(fields).map(([name, type]) => ({ name, type })),
})
const fit = (type: SparkType, value: unknown, values = 1_000_000) =>
  inColumn('c', () => fitFor(type)(value, { values }))

const half = '\ud83d'
const ms = 1_700_000_000_000

test.each<[SparkType, unknown, RegExp]>([
  [of('timestamp'), ms, /'c' is the number 1700000000000, which a timestamp cannot hold; give a Date \(new Date/],
  [of('timestamp'), BigInt(ms), /the bigint 1700000000000n, which a timestamp cannot hold/],
  [of('timestamp_ntz'), ms, /a timestamp_ntz cannot hold/],
  [of('timestamp_ntz'), '2024-02-29T12:30:00+01:00', /text without a time zone/],
  [of('timestamp'), '2024-02-30T12:30:00Z', /cannot hold/],
  [of('timestamp'), '2024-02-29T24:00:00Z', /cannot hold/],
  [of('timestamp'), '2024-02-29T12:30:00.1234567Z', /cannot hold/],
  [of('timestamp'), 'yesterday', /the text "yesterday"/],
  [of('timestamp'), new Date(Number.NaN), /an invalid date, which cannot be in a row/],
  [of('date'), ms, /give a Date at midnight UTC, or text such as '2024-02-29'/],
  [of('date'), new Date(ms), /the date 2023-11-14T22:13:20.000Z.*a date has no time of day/],
  [of('date'), '2023-02-29', /cannot hold/],
  [of('date'), '2023-02-28T00:00', /cannot hold/],
  [of('float'), 1e300, /the number 1e\+300, which a float cannot hold; give a column of type double/],
  [of('float'), -1e-300, /cannot hold/],
  [of('float'), 16777217n, /cannot hold/],
  [of('double'), 9007199254740993n, /the bigint 9007199254740993n, which a double cannot hold/],
  [of('double'), 10n ** 400n, /a bigint of many digits/],
  [of('double'), '1.5', /the text "1.5", which a double cannot hold; give a number/],
  [of('tinyint'), 128, /a whole number from -128 to 127/],
  [of('smallint'), -32769n, /a smallint cannot hold/],
  [of('int'), 2 ** 31, /an int cannot hold; give a whole number from -2147483648 to 2147483647/],
  [of('int'), 1.5, /cannot hold/],
  [of('int'), Number.NaN, /NaN, which an int cannot hold/],
  [of('int'), '5', /cannot hold/],
  [of('int'), true, /true, which an int cannot hold/],
  [of('bigint'), 2n ** 63n, /cannot hold/],
  [of('bigint'), 2 ** 63, /cannot hold/],
  [decimal(5, 2), 0.1 + 0.2, /a decimal\(5,2\) cannot hold; give text or a number with at most 3 digits before/],
  [decimal(5, 2), '1.239', /cannot hold/],
  [decimal(5, 2), 1000n, /cannot hold/],
  [decimal(5, 2), Number.POSITIVE_INFINITY, /cannot hold/],
  [decimal(5, 2), '1e999', /cannot hold/],
  [decimal(38, 0), '9'.repeat(39), /cannot hold/],
  [decimal(38, 0), 10n ** 100_000n, /a bigint of many digits/],
  [of('boolean'), 'true', /give true or false/],
  [of('boolean'), 1, /give true or false/],
  [of('binary'), 'aGVsbG8=', /give a Uint8Array/],
  [of('string'), `cut ${half}`, /'c' is text with half of a surrogate pair.*toWellFormed/],
  [of('other'), { deep: [half] }, /half of a surrogate pair/],
  [map(of('int')), { [half]: 1 }, /half of a surrogate pair/],
  [map(of('int')), new Map([[1, 1]]), /a Map with a number as a key; keys must be text/],
  [map(of('int')), [1], /an array, which a map cannot hold; give an object or a Map/],
  [struct({ a: of('int') }), 'x', /the text "x", which a struct cannot hold/],
  [array(of('int')), { length: 1 }, /an object, which an array cannot hold/],
  [array(of('tinyint')), [1, 2, 300], /'c' has, at '2', the number 300/],
  [
    struct({ a: array(struct({ b: of('float') })) }),
    { a: [{ b: 1 }, { b: 1e39 }] },
    /'c' has, at 'a\.1\.b', the number/,
  ],
  [map(of('date')), { day: 5 }, /'c' has, at 'day', the number 5/],
  [array(of('string')), [() => 1], /'c' has, at '0', a function, which cannot be in a row/],
  [of('string'), { at: Promise.resolve() }, /'c' has, at 'at', a promise/],
])('%j refuses %s', (type, value, message) => {
  expect(() => fit(type, value)).toThrow(message)
})

test.each<[SparkType, unknown, string]>([
  [of('double'), -0, '-0.0'],
  [of('float'), 0.1, '0.10000000149011612'],
  [of('float'), 16777216n, '16777216'],
  [of('double'), Number.NEGATIVE_INFINITY, '"-Infinity"'],
  [of('int'), -0, '0'],
  [of('bigint'), 2 ** 62, '4611686018427387904'],
  [decimal(5, 2), 0.1, '1e-1'],
  [decimal(5, 2), '-0012.500', '-125e-1'],
  [decimal(5, 2), '0.000', '0'],
  [decimal(38, 18), 1e-7, '1e-7'],
  [of('timestamp'), '2024-02-29 12:30', '"2024-02-29T12:30:00Z"'],
  [of('timestamp'), '1969-12-31T23:59:59.999999+01:00', '"1969-12-31T23:59:59.999999+01:00"'],
  [of('timestamp_ntz'), new Date(-1), '"1969-12-31T23:59:59.999"'],
  [of('date'), new Date('2024-02-29'), '"2024-02-29"'],
  [of('string'), -0, '"-0"'],
  [of('string'), Number.NaN, '"NaN"'],
  [of('string'), { x: [-0, 12345678901234567890n, half] }, String.raw`"{\"x\":[-0,12345678901234567890,\"\\ud83d\"]}"`],
  [of('string'), new Error('no'), String.raw`"{\"name\":\"Error\",\"message\":\"no\"}"`],
  [of('string'), { toJSON: () => undefined }, 'null'],
  [of('other'), { a: 12345678901234567890n, b: '\\ud' }, String.raw`{"a":12345678901234567890,"b":"\\ud"}`],
  // biome-ignore lint/suspicious/noSparseArray: holes are what it is about
  [array(of('int')), [1, , undefined], '[1,null,null]'],
  [array(of('double')), new Float32Array([0.5]), '[0.5]'],
  [array(of('tinyint')), new Set([1]), '[1]'],
  [map(of('int')), JSON.parse('{"__proto__":1}'), '{"__proto__":1}'],
  [struct(JSON.parse('{"__proto__":{"name":"int"}}')), JSON.parse('{"__proto__":1}'), '{"__proto__":1}'],
  [struct({ constructor: of('string') }), {}, '{"constructor":null}'],
  [struct({ a: of('int') }), new Map([['a', 1]]), '{"a":1}'],
])('%j takes %s', (type, value, json) => {
  expect(fit(type, value)).toBe(json)
})

describe('what would take for ever is refused', () => {
  const sparse: unknown[] = []
  sparse[4_000_000_000] = 1
  let shared: unknown = []
  for (let depth = 0; depth < 60; depth++) shared = [shared, shared]

  test('in text', () => {
    for (const value of [sparse, shared]) expect(() => fit(of('string'), value)).toThrow('too many values for one row')
  })

  test('in arrays', () => {
    expect(() => fit(array(of('int')), sparse)).toThrow('too many values for one row')
    expect(() => fit(array(array(of('int'))), new Array(1000).fill(new Array(10_000)))).toThrow('too many values')
  })
})
