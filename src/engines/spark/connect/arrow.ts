import {
  binary,
  bool,
  columnFromArray,
  float64,
  int64,
  tableFromColumns,
  tableFromIPC,
  tableToIPC,
  utf8,
} from '@uwdata/flechette'
import { put, type Reader, type Row, readerOf } from './arrow-values.ts'

/** Converts between Arrow and plain values. */

export type { Row } from './arrow-values.ts'

export type ColumnType = 'string' | 'double' | 'bigint' | 'boolean' | 'binary'
export type ColumnValues = readonly (string | number | bigint | boolean | Uint8Array | null)[]

const ARROW_TYPES = { string: utf8, double: float64, bigint: int64, boolean: bool, binary }
const JS_TYPES = { string: 'string', number: 'double', bigint: 'bigint', boolean: 'boolean' } as const

/** Columns as an Arrow stream. A column's type is that of its values; text if it has none. */
export function encodeColumns(
  columns: Readonly<Record<string, ColumnValues>>,
  types: Readonly<Record<string, ColumnType>> = {},
): Uint8Array {
  const made = Object.entries(columns).map(([name, values]) => {
    const type = types[name] ?? values.map(typeOf).find((found) => found !== undefined) ?? 'string'
    for (const [row, value] of values.entries()) {
      const its = typeOf(value)
      if (its !== undefined && its !== type)
        throw new TypeError(`column "${name}" is ${type}, but row ${row} has a ${its}`)
    }
    return [name, columnFromArray(values as unknown[], ARROW_TYPES[type]())] satisfies [string, unknown]
  })
  if (new Set(made.map(([, { length }]) => length)).size > 1) throw new TypeError('columns must be of the same length')
  return tableToIPC(tableFromColumns(made), { format: 'stream' })!
}

function typeOf(value: ColumnValues[number]): ColumnType | undefined {
  if (value === null) return undefined
  if (value instanceof Uint8Array) return 'binary'
  return JS_TYPES[typeof value as keyof typeof JS_TYPES]
}

/**
 * The rows of one Arrow stream, as plain values:
 *
 * - integers: numbers; a 64-bit one that a number cannot hold is a bigint
 * - decimals: numbers if the type has at most 15 digits, which a number always holds; else text with all digits
 * - dates: `Date` at midnight UTC; timestamps: `Date`, rounded down to the millisecond; without a time zone, they are read as UTC
 * - times of day: text; intervals: milliseconds, or months
 * - arrays, structs: arrays, objects; maps: objects if their keys are text, else pairs
 *
 * Of columns with the same name, the last one wins. Values that JavaScript cannot represent are an error: invalid UTF-8, times
 * beyond the range of `Date`.
 */
export function* decodeRows(ipc: Uint8Array): Generator<Row> {
  const { children, schema } = tableFromIPC(aligned(ipc), { useBigInt: true, useDecimalInt: true })
  const columns = schema.fields.map(({ name }, index) => ({ name, parts: children[index]!.data }))
  const parts = columns[0]?.parts.length ?? 0
  for (let part = 0; part < parts; part++) {
    const rows = columns[0]!.parts[part]!.length
    const readers: [string, Reader][] = columns.map(({ name, parts }) => [name, readerOf(parts[part]!, name)])
    for (let index = 0; index < rows; index++) {
      const row: Row = {}
      for (const [name, read] of readers) put(row, name, read(index))
      yield row
    }
  }
}

/** Copies the bytes if they are not aligned to eight, as typed arrays need. */
const aligned = (bytes: Uint8Array): Uint8Array => (bytes.byteOffset % 8 === 0 ? bytes : new Uint8Array(bytes))
