import {
  type Batch,
  binary,
  bool,
  columnFromArray,
  type DataType,
  type Field,
  float64,
  int64,
  TimeUnit,
  Type,
  tableFromColumns,
  tableFromIPC,
  tableToIPC,
  utf8,
} from '@uwdata/flechette'

/** Rows come and go as Arrow. This is the border between that and plain values. */

export type Row = Record<string, unknown>

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
 * - dates and timestamps: `Date`, at midnight UTC and to the millisecond; those without time zone as if it were UTC
 * - times of day: text; intervals: milliseconds, or months
 * - arrays, structs: arrays, objects; maps: objects if their keys are text, else pairs
 *
 * Of columns with the same name, the last is there.
 */
export function* decodeRows(ipc: Uint8Array): Generator<Row> {
  const { children, schema } = tableFromIPC(aligned(ipc), { useBigInt: true, useDate: true, useDecimalInt: true })
  const columns = schema.fields.map(({ name, type }, index) => ({
    name,
    read: reader(type),
    parts: children[index]!.data,
  }))
  const parts = columns[0]?.parts.length ?? 0
  for (let part = 0; part < parts; part++) {
    const rows = columns[0]!.parts[part]!.length
    for (let index = 0; index < rows; index++) {
      const row: Row = {}
      for (const { name, read, parts } of columns) put(row, name, read((parts[part] as Batch<unknown>).at(index)))
      yield row
    }
  }
}

/** A copy, if it begins in the middle of eight bytes: typed arrays cannot. */
const aligned = (bytes: Uint8Array): Uint8Array => (bytes.byteOffset % 8 === 0 ? bytes : new Uint8Array(bytes))

/** As `object[name] = value`, whatever the name: a column may be called `__proto__`. */
function put(object: Row, name: string, value: unknown): void {
  if (name === '__proto__')
    Object.defineProperty(object, name, { value, enumerable: true, configurable: true, writable: true })
  else object[name] = value
}

type Reader = (value: unknown) => unknown

const EXACT_DIGITS = 15

function reader(type: DataType): Reader {
  const read = nonNullReader(type)
  return read === undefined ? asItIs : (value) => (value === null ? null : read(value))
}

const asItIs: Reader = (value) => value

function nonNullReader(type: DataType): Reader | undefined {
  switch (type.typeId) {
    case Type.Int:
      return type.bitWidth === 64 ? (value) => smallest(value as bigint) : undefined
    case Type.Decimal: {
      const { precision, scale } = type
      if (precision <= EXACT_DIGITS) return (value) => Number(decimalText(BigInt(value as bigint), scale))
      return (value) => decimalText(BigInt(value as bigint), scale)
    }
    case Type.Time: {
      const perSecond = PER_SECOND[type.unit]!
      return (value) => timeText(BigInt(value as bigint), perSecond)
    }
    case Type.Duration: {
      const perSecond = PER_SECOND[type.unit]!
      return (value) => (Number(value as bigint) / Number(perSecond)) * 1000
    }
    case Type.Binary:
    case Type.LargeBinary:
    case Type.FixedSizeBinary:
      // A copy: a view would keep the whole batch in memory.
      return (value) => (value as Uint8Array).slice()
    case Type.Interval:
      return (value) => (typeof value === 'number' ? value : [...(value as Iterable<number>)])
    case Type.List:
    case Type.LargeList:
    case Type.FixedSizeList: {
      const read = reader(type.children[0]!.type)
      return (value) => Array.from(value as Iterable<unknown>, read)
    }
    case Type.Struct: {
      const fields = type.children.map(({ name, type }) => ({ name, read: reader(type) }))
      return (value) => {
        const object: Row = {}
        for (const { name, read } of fields) put(object, name, read((value as Row)[name]))
        return object
      }
    }
    case Type.Map:
      return mapReader(type.children[0])
    default:
      return undefined
  }
}

function mapReader(entries: Field): Reader {
  const [key, value] = (entries.type as { children: Field[] }).children as [Field, Field]
  const [readKey, readValue] = [reader(key.type), reader(value.type)]
  const pairs = (map: unknown) => (map as [unknown, unknown][]).map(([k, v]) => [readKey(k), readValue(v)] as const)
  if (key.type.typeId !== Type.Utf8 && key.type.typeId !== Type.LargeUtf8) return pairs
  return (map) => {
    const object: Row = {}
    for (const [name, its] of pairs(map)) put(object, name as string, its)
    return object
  }
}

const smallest = (value: bigint): number | bigint =>
  value >= Number.MIN_SAFE_INTEGER && value <= Number.MAX_SAFE_INTEGER ? Number(value) : value

function decimalText(unscaled: bigint, scale: number): string {
  if (scale <= 0) return String(unscaled * 10n ** BigInt(-scale))
  const sign = unscaled < 0n ? '-' : ''
  const digits = String(unscaled < 0n ? -unscaled : unscaled).padStart(scale + 1, '0')
  return `${sign}${digits.slice(0, -scale)}.${digits.slice(-scale)}`
}

const PER_SECOND: Readonly<Record<number, bigint>> = {
  [TimeUnit.SECOND]: 1n,
  [TimeUnit.MILLISECOND]: 1000n,
  [TimeUnit.MICROSECOND]: 1_000_000n,
  [TimeUnit.NANOSECOND]: 1_000_000_000n,
}

function timeText(value: bigint, perSecond: bigint): string {
  const seconds = Number(value / perSecond)
  const two = (number: number) => String(Math.floor(number)).padStart(2, '0')
  const fraction = String((value % perSecond) + perSecond)
    .slice(1)
    .replace(/0+$/, '')
  return `${two(seconds / 3600)}:${two((seconds / 60) % 60)}:${two(seconds % 60)}${fraction && `.${fraction}`}`
}
