import { type FileHandle, open } from 'node:fs/promises'
import { brotliDecompressSync, gunzipSync, zstdDecompressSync } from 'node:zlib'
import {
  type AsyncBuffer,
  type FileMetaData,
  type ParquetReadOptions,
  parquetMetadataAsync,
  parquetReadObjects,
  parquetSchema,
  type RowGroup,
  type SchemaElement,
} from 'hyparquet'
import { DataError } from './data-error.ts'
import type { ParsedRow } from './data-set.ts'
import { unreadable } from './open-bytes.ts'

/** The limit for the uncompressed columns that are read: a row group is held in memory as a whole. */
const MAX_GROUP_BYTES = 512 * 1024 * 1024
/** Numbers with up to this many digits are exact in JavaScript. */
const EXACT_DIGITS = 15

const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

type Row = Record<string, unknown>
type Decompress = (input: Uint8Array, outputLength: number) => Uint8Array
const within =
  (decompress: (input: Uint8Array, options: { maxOutputLength: number }) => Uint8Array): Decompress =>
  (input, length) =>
    decompress(input, { maxOutputLength: Math.max(1, length) })

/** Node has all codecs except LZ4 and LZO; hyparquet has Snappy. */
const compressors = {
  GZIP: within(gunzipSync),
  BROTLI: within(brotliDecompressSync),
  ZSTD: within(zstdDecompressSync),
}

/** Exact conversions: the library would drop a byte order mark, replace invalid UTF-8, and round times towards 1970. */
const parsers = {
  stringFromBytes: (bytes: Uint8Array | undefined) => bytes && utf8.decode(bytes),
  timestampFromMicroseconds: (micros: bigint) => new Date(Number(floorDivide(micros, 1000n))),
  timestampFromNanoseconds: (nanos: bigint) => new Date(Number(floorDivide(nanos, 1_000_000n))),
}

const floorDivide = (value: bigint, by: bigint) => (value - (((value % by) + by) % by)) / by

/** The rows of each row group. */
export async function* parquetGroups(
  path: string,
  file: string,
  columns: readonly string[] | undefined,
): AsyncGenerator<ParsedRow[]> {
  const handle = await open(path).catch((cause: unknown) => {
    throw unreadable(file, cause)
  })
  try {
    const buffer = await bufferOf(handle)
    const metadata = await reading(file, undefined, () => parquetMetadataAsync(buffer, { geoparquet: false }))
    const convert = converterFor(metadata, columns, file)
    let rowStart = 0
    for (const [place, group] of metadata.row_groups.entries()) {
      const rowEnd = rowStart + Number(group.num_rows)
      refuseHuge(group, columns, file, place)
      const range = { ...(columns && { columns: [...columns] }), rowStart, rowEnd }
      const options = { file: buffer, metadata, compressors, parsers, utf8: false, geoparquet: false, ...range }
      const rows = await reading(file, rowStart + 1, () => parquetReadObjects(options as ParquetReadOptions))
      yield parsedRows(rows, rowStart + 1, convert)
      rowStart = rowEnd
    }
  } finally {
    await handle.close()
  }
}

const parsedRows = (rows: readonly Row[], first: number, convert: (row: Row) => Row): ParsedRow[] =>
  rows.map((row, at) => ({ line: first + at, row: convert(row) }))

async function bufferOf(handle: FileHandle): Promise<AsyncBuffer> {
  const { size } = await handle.stat()
  return {
    byteLength: size,
    async slice(start, end = size) {
      const bytes = new Uint8Array(Math.max(0, end - start))
      for (let at = 0; at < bytes.length; ) {
        const { bytesRead } = await handle.read(bytes, at, bytes.length - at, start + at)
        if (bytesRead === 0) throw new Error('the file ends too early')
        at += bytesRead
      }
      return bytes.buffer
    },
  }
}

/** `row`: the first row to be read, from 1. */
async function reading<T>(file: string, row: number | undefined, read: () => Promise<T>): Promise<T> {
  try {
    return await read()
  } catch (cause) {
    const message = cause instanceof Error ? cause.message : String(cause)
    const what = row === undefined ? 'not a Parquet file' : 'cannot read the row group that starts here'
    const cure = /compression codec/.test(message) ? '; write it with snappy, gzip, brotli or zstd' : ''
    throw new DataError('DATA_INVALID', { file, line: row }, `${what}: ${message}${cure}`, { cause })
  }
}

function refuseHuge(group: RowGroup, columns: readonly string[] | undefined, file: string, place: number): void {
  let bytes = 0n
  for (const { meta_data: column } of group.columns)
    if (column && (columns === undefined || columns.includes(column.path_in_schema[0]!)))
      bytes += column.total_uncompressed_size
  if (bytes <= MAX_GROUP_BYTES) return
  throw new DataError(
    'DATA_INVALID',
    { file },
    `row group ${place + 1} has ${Math.ceil(Number(bytes) / 1e6)} MB uncompressed, which is too large to read at once; select columns with \`columns\`, or write smaller row groups (pyarrow: row_group_size=10_000)`,
  )
}

/** Checks the columns, and returns a function that converts a row of the library to a plain row. */
function converterFor(metadata: FileMetaData, columns: readonly string[] | undefined, file: string) {
  const { children } = parquetSchema(metadata)
  const known = children.map(({ element }) => element.name)
  const missing = columns?.find((name) => !known.includes(name))
  if (missing !== undefined)
    throw new DataError('DATA_INVALID', { file }, `no column '${missing}'; the columns are ${known.join(', ')}`)
  const scales = new Map<string, number>()
  const refuseDecimal = (name: string, why: string) => {
    throw new DataError(
      'DATA_INVALID',
      { file },
      `column '${name}' is a DECIMAL ${why}, which cannot be read exactly; write it as text, or leave it out with \`columns\``,
    )
  }
  for (const { element, children: inner } of children) {
    if (columns && !columns.includes(element.name)) continue
    const { name, precision = 0, scale = 0 } = element
    if (isDecimal(element) && precision > EXACT_DIGITS) refuseDecimal(name, `of ${precision} digits`)
    if (isDecimal(element)) scales.set(name, scale)
    const below = [...inner]
    for (const node of below) {
      if (isDecimal(node.element)) refuseDecimal(name, 'inside a list or struct')
      below.push(...node.children)
    }
  }
  return (row: Row): Row => {
    for (const name in row) row[name] = plain(row[name])
    // The library multiplies by a power of ten, which is not exact.
    for (const [name, scale] of scales)
      if (typeof row[name] === 'number') row[name] = Number((row[name] as number).toFixed(scale))
    return row
  }
}

const isDecimal = ({ converted_type: type, logical_type: logical }: SchemaElement) =>
  type === 'DECIMAL' || logical?.type === 'DECIMAL'

/** Converts 64-bit integers to numbers if that is exact, like `sparkRows`, and missing values to null. */
function plain(value: unknown): unknown {
  if (typeof value === 'bigint') return Number.isSafeInteger(Number(value)) ? Number(value) : value
  if (value === undefined || value === null) return null
  if (typeof value !== 'object' || value instanceof Date || ArrayBuffer.isView(value)) return value
  if (Array.isArray(value)) return value.map(plain)
  return Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, plain(inner)]))
}
