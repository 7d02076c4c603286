import { type Batch, type DataType, DateUnit, TimeUnit, Type } from '@uwdata/flechette'
import { ManyworldsError } from '../../../errors.ts'

export type Row = Record<string, unknown>

/** The value in a row. */
export type Reader = (row: number) => unknown

/** Like `object[name] = value`, but safe for a column, field or key called `__proto__`. */
export function put(object: Row, name: string, value: unknown): void {
  if (name === '__proto__')
    Object.defineProperty(object, name, { value, enumerable: true, configurable: true, writable: true })
  else object[name] = value
}

/**
 * Reads the values of an Arrow batch as the plain values that `decodeRows` describes. It reads the buffers itself, because the
 * library rounds times towards 1970, drops byte order marks, replaces invalid UTF-8, and loses a field called `__proto__`.
 */
export function readerOf(batch: Batch<unknown>, column: string): Reader {
  const read = nonNullReader(batch, column)
  // A column of only nulls may have no validity bitmap.
  const { nullCount, validity } = batch
  return nullCount > 0 && validity !== undefined ? (row) => (batch.isValid(row) ? read(row) : null) : read
}

/** Child batches exist, though not in the library's types. */
interface Inner {
  readonly values: ArrayLike<number | bigint> & Uint8Array
  readonly offsets: ArrayLike<number | bigint>
  readonly children: readonly Batch<unknown>[]
}

const EXACT_DIGITS = 15

function nonNullReader(batch: Batch<unknown>, column: string): Reader {
  const type = batch.type as DataType
  const { values, children } = batch as unknown as Inner
  const number = (row: number) => values[row] as number
  const bigint = (row: number) => BigInt(values[row]!)
  switch (type.typeId) {
    case Type.Int:
      return type.bitWidth === 64 ? (row) => smallest(bigint(row)) : number
    case Type.Decimal: {
      const { precision, scale } = type
      const text: Reader = (row) => decimalText(BigInt(batch.value(row) as bigint), scale)
      return precision <= EXACT_DIGITS ? (row) => Number(text(row)) : text
    }
    case Type.Date:
      return dateReader(
        column,
        'DATE',
        type.unit === DateUnit.DAY ? (row) => number(row) * DAY_MS : (row) => Number(bigint(row)),
      )
    case Type.Timestamp: {
      const perSecond = PER_SECOND[type.unit]!
      return dateReader(column, 'TIMESTAMP', (row) => Number(floorDivide(bigint(row) * 1000n, perSecond)))
    }
    case Type.Time: {
      const perSecond = PER_SECOND[type.unit]!
      return (row) => timeText(bigint(row), perSecond)
    }
    case Type.Duration: {
      const perSecond = PER_SECOND[type.unit]!
      return (row) => (Number(bigint(row)) / Number(perSecond)) * 1000
    }
    case Type.Utf8:
    case Type.LargeUtf8: {
      const [from, to] = rangeOf(batch)
      return (row) => textOf(values.subarray(from(row), to(row)), column)
    }
    case Type.Binary:
    case Type.LargeBinary:
    case Type.FixedSizeBinary:
      // A copy: a view would keep the whole batch in memory.
      return (row) => (batch.value(row) as Uint8Array).slice()
    case Type.Interval:
      return (row) => {
        const value = batch.value(row)
        return typeof value === 'number' ? value : [...(value as Iterable<number>)]
      }
    case Type.List:
    case Type.LargeList: {
      const [from, to] = rangeOf(batch)
      const read = readerOf(children[0]!, column)
      return (row) => {
        const first = from(row)
        return Array.from({ length: to(row) - first }, (_, index) => read(first + index))
      }
    }
    case Type.Struct: {
      const fields = type.children.map(({ name }, index) => ({ name, read: readerOf(children[index]!, column) }))
      return (row) => {
        const object: Row = {}
        for (const { name, read } of fields) put(object, name, read(row))
        return object
      }
    }
    case Type.Map:
      return mapReader(batch, column)
    default:
      return (row) => batch.value(row)
  }
}

function rangeOf(batch: Batch<unknown>): [from: (row: number) => number, to: (row: number) => number] {
  const { offsets } = batch as unknown as Inner
  return [(row) => Number(offsets[row]), (row) => Number(offsets[row + 1])]
}

function mapReader(batch: Batch<unknown>, column: string): Reader {
  const [keys, values] = (batch as unknown as { children: [Inner] }).children[0].children as [
    Batch<unknown>,
    Batch<unknown>,
  ]
  const [readKey, readValue] = [readerOf(keys, column), readerOf(values, column)]
  const [from, to] = rangeOf(batch)
  const keyType = (keys.type as DataType).typeId
  if (keyType !== Type.Utf8 && keyType !== Type.LargeUtf8)
    return (row) => {
      const first = from(row)
      return Array.from({ length: to(row) - first }, (_, at) => [readKey(first + at), readValue(first + at)])
    }
  return (row) => {
    const object: Row = {}
    for (let at = from(row); at < to(row); at++) put(object, readKey(at) as string, readValue(at))
    return object
  }
}

const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

function textOf(bytes: Uint8Array, column: string): string {
  try {
    return utf8.decode(bytes)
  } catch {
    throw unreadable(column, 'text that is not UTF-8', 'BINARY')
  }
}

const DAY_MS = 86_400_000

function dateReader(column: string, type: string, milliseconds: (row: number) => number): Reader {
  return (row) => {
    const date = new Date(milliseconds(row))
    if (Number.isNaN(date.getTime())) throw unreadable(column, `a ${type} outside the range of Date`, 'STRING')
    return date
  }
}

const unreadable = (column: string, what: string, castTo: string) =>
  new ManyworldsError('SOURCE_FAILED', `column '${column}' has ${what}; read it with \`sql\`, as CAST(… AS ${castTo})`)

function floorDivide(value: bigint, by: bigint): bigint {
  const quotient = value / by
  return value < 0n && quotient * by !== value ? quotient - 1n : quotient
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
