import fc from 'fast-check'
import { expect, test } from 'vitest'
import { sparkRows, sparkSink } from '../../dist/engines/spark/index.js'
import type { TaskResponse } from '../../dist/index.js'
import type { DataSpark, Row } from './data-source.ts'

/** What is written is what is read, whatever it is; or it is refused. */

interface Column {
  readonly type: string
  /** What is given, and what is read. */
  readonly value: fc.Arbitrary<readonly [given: unknown, read: unknown]>
}

const same = <T>(values: fc.Arbitrary<T>) => values.map((value) => [value, value] as const)
const integers = (bits: number) => same(fc.integer({ min: -(2 ** (bits - 1)), max: 2 ** (bits - 1) - 1 }))
const smallest = (value: bigint) => (Number.isSafeInteger(Number(value)) ? Number(value) : value)
const bigints = fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n }).map((value) => [value, smallest(value)] as const)
const EDGES = [-(2n ** 63n), 2n ** 63n - 1n, 2n ** 53n, -(2n ** 53n) + 1n]
const texts = fc.oneof(
  fc.string({ unit: 'binary', maxLength: 20 }),
  fc.constantFrom('', '\ufeffmark', 'null', '"', '\\', '\u0000', '\u2028', '😀'),
)
const dates = fc.date({ noInvalidDate: true })
const midnights = fc.integer({ min: -100_000_000, max: 100_000_000 }).map((day) => new Date(day * 86_400_000))

const decimals = (precision: number, scale: number): Column => ({
  type: `decimal(${precision},${scale})`,
  value: fc.bigInt({ min: -(10n ** BigInt(precision)) + 1n, max: 10n ** BigInt(precision) - 1n }).map((unscaled) => {
    const digits = String(unscaled < 0n ? -unscaled : unscaled).padStart(scale + 1, '0')
    const point = digits.length - scale
    const text = `${unscaled < 0n ? '-' : ''}${digits.slice(0, point)}${scale > 0 ? `.${digits.slice(point)}` : ''}`
    return [text, precision <= 15 ? Number(text) : text] as const
  }),
})

/** To the microsecond, of which the reader gets the millisecond that it is in. */
const microseconds = fc.bigInt({ min: -62_000_000_000_000_000n, max: 250_000_000_000_000_000n }).map((micros) => {
  const milliseconds = Number((micros - (((micros % 1000n) + 1000n) % 1000n)) / 1000n)
  const rest = String(((micros % 1000n) + 1000n) % 1000n).padStart(3, '0')
  return [new Date(milliseconds).toISOString().replace('Z', `${rest}Z`), new Date(milliseconds)] as const
})

const SCALARS: readonly Column[] = [
  { type: 'boolean', value: same(fc.boolean()) },
  { type: 'tinyint', value: integers(8) },
  { type: 'smallint', value: integers(16) },
  { type: 'int', value: integers(32) },
  {
    type: 'bigint',
    value: fc.oneof(
      bigints,
      fc.constantFrom(...EDGES).map((n) => [n, smallest(n)] as const),
    ),
  },
  { type: 'bigint', value: same(fc.maxSafeInteger()) },
  { type: 'float', value: same(fc.float()) },
  { type: 'double', value: same(fc.double()) },
  { type: 'string', value: same(texts) },
  { type: 'binary', value: same(fc.uint8Array({ maxLength: 20 })) },
  { type: 'date', value: same(midnights) },
  { type: 'timestamp', value: same(dates) },
  { type: 'timestamp', value: microseconds },
  { type: 'timestamp_ntz', value: same(dates) },
  ...[decimals(5, 2), decimals(15, 15), decimals(16, 0), decimals(38, 18)],
]

const FIELDS = ['__proto__', 'constructor', 'a b', 'ü`', 'toString']
const orNull = (value: Column['value']) => fc.option(value, { freq: 6 }).map((pair) => pair ?? ([null, null] as const))
const object = (pairs: readonly (readonly [string, unknown])[]) => Object.fromEntries(pairs)

const { column } = fc.letrec<{ column: Column }>((tie) => ({
  column: fc.oneof(
    { depthSize: 'small', withCrossShrink: true },
    fc.constantFrom(...SCALARS),
    tie('column').map(({ type, value }) => ({
      type: `array<${type}>`,
      value: fc
        .array(orNull(value), { maxLength: 4 })
        .map((pairs) => [pairs.map(([given]) => given), pairs.map(([, read]) => read)] as const),
    })),
    tie('column').map(({ type, value }) => ({
      type: `map<string, ${type}>`,
      value: fc
        .uniqueArray(fc.tuple(fc.oneof(texts, fc.constantFrom(...FIELDS)), orNull(value)), {
          maxLength: 4,
          selector: ([key]) => key,
        })
        .map(
          (pairs) =>
            [
              new Map(pairs.map(([key, [given]]) => [key, given])),
              object(pairs.map(([key, [, read]]) => [key, read])),
            ] as const,
        ),
    })),
    fc.array(tie('column'), { minLength: 1, maxLength: FIELDS.length }).map((columns) => ({
      type: `struct<${columns.map(({ type }, index) => `\`${FIELDS[index]!.replace('`', '``')}\`: ${type}`).join(', ')}>`,
      value: fc
        .tuple(...columns.map(({ value }) => orNull(value)))
        .map(
          (pairs) =>
            [
              object(pairs.map(([given], index) => [FIELDS[index]!, given])),
              object(pairs.map(([, read], index) => [FIELDS[index]!, read])),
            ] as const,
        ),
    })),
  ),
}))

const tables = fc.array(column, { minLength: 6, maxLength: 10 }).chain((columns) =>
  fc.record({
    schema: fc.constant(columns.map(({ type }, index) => `c${index} ${type}`).join(', ')),
    rows: fc.array(fc.tuple(...columns.map(({ value }) => orNull(value))), { minLength: 20, maxLength: 40 }),
  }),
)

const rowOf = (pairs: readonly (readonly [unknown, unknown])[], which: 0 | 1): Row =>
  object(pairs.map((pair, index) => [`c${index}`, pair[which]]))

export function testValues({ on, path, query }: DataSpark): void {
  async function read(parquet: string): Promise<Row[]> {
    const rows: Row[] = []
    for await (const row of sparkRows<Row>({ sql: `SELECT * FROM parquet.\`${parquet}\` ORDER BY id`, ...on }))
      rows.push(row)
    return rows
  }

  /** Rows there and back. */
  async function roundTrip(rows: readonly Row[], schema?: string, batchRows = 10_000): Promise<Row[]> {
    const parquet = path('values')
    const responses = rows.map(
      (_, index) => ({ id: String(index), status: 'success', timing: {}, usage: {} }) as unknown as TaskResponse,
    )
    const row = ({ id }: TaskResponse) => ({ id: Number(id), ...rows[Number(id)] })
    const types = schema === undefined ? {} : { schema: `id int, ${schema}` }
    await sparkSink({ parquet, mode: 'overwrite', row, batchRows, ...types, ...on }).write(responses)
    return (await read(parquet)).map(({ id, ...others }) => others)
  }

  test('values of every type, there and back', { timeout: 300_000 }, async () => {
    const property = fc.asyncProperty(tables, async ({ schema, rows }) => {
      expect(
        await roundTrip(
          rows.map((row) => rowOf(row, 0)),
          schema,
        ),
      ).toEqual(rows.map((row) => rowOf(row, 1)))
    })
    await fc.assert(property, { numRuns: 3, endOnFailure: true })
  })

  test('without a schema, nothing is changed either', { timeout: 240_000 }, async () => {
    const rows = [
      { number: -0, big: 1, mixed: 1e21, huge: 1n },
      { number: 5e-324, big: 2n ** 62n, mixed: -0, huge: 2n ** 64n },
      { number: Number.NaN, big: null, mixed: new Date(0), huge: null },
    ]
    const back = await roundTrip(rows)
    expect(back).toEqual([
      { number: -0, big: 1, mixed: '1e+21', huge: '1' },
      { number: 5e-324, big: 2n ** 62n, mixed: '-0', huge: String(2n ** 64n) },
      { number: Number.NaN, big: null, mixed: '1970-01-01T00:00:00.000Z', huge: null },
    ])
    // Once a column is of doubles, it does not round what comes later.
    const later = roundTrip([{ n: 1 }, { n: 2n ** 60n + 1n }], undefined, 1)
    await expect(later).rejects.toMatchObject({
      code: 'CONFIG_INVALID',
      message: expect.stringMatching(/response '1' .* which a double cannot hold.* \(1 rows in 1 batches were written/),
    })
  })

  test('a value of 25 MB; a row that is too large says so', { timeout: 240_000 }, async () => {
    const text = 'x'.repeat(25_000_000)
    const [row] = await roundTrip([{ text, json: [text.slice(0, 1000)] }], 'text string, json string')
    expect(row!.text === text).toBe(true)
    await expect(roundTrip([{ text: text.repeat(5) }], 'text string')).rejects.toMatchObject({
      code: 'CONFIG_INVALID',
      message: expect.stringMatching(
        /response '0' cannot be made a row: it has 1\d\d MB as JSON, and one row may have at most 96 MB/,
      ),
    })
  })

  test('what JavaScript has no value for is an error when it is read', async () => {
    const first = async (expression: string): Promise<unknown> => {
      for await (const { v } of sparkRows<Row>({ sql: `SELECT ${expression} AS v`, ...on })) return v
      return undefined
    }
    await expect(first("CAST(X'61ff' AS STRING)")).rejects.toMatchObject({
      code: 'SOURCE_FAILED',
      message: expect.stringMatching(/column 'v' has text that is not UTF-8; .* CAST\(… AS BINARY\)/),
    })
    await expect(first("array(DATE'+999999-01-01')")).rejects.toMatchObject({ code: 'SOURCE_FAILED' })
    expect(await first("TIMESTAMP'1969-12-31 23:59:59.999999Z'")).toEqual(new Date(-1))
    expect(await first("named_struct('__proto__', 1, 'x', array(named_struct('__proto__', 2)))")).toEqual(
      JSON.parse('{"__proto__":1,"x":[{"__proto__":2}]}'),
    )
    expect(await query("SELECT '\ufefftext' AS v")).toEqual([{ v: '\ufefftext' }])
  })
}
