import { ManyworldsError } from '../../../errors.ts'
import { isPromise, kindInWords } from './words.ts'

type Row = Readonly<Record<string, unknown>>

/** A row as JSON, in the way that Spark reads values of its types from JSON. */
export const rowJson = (row: Row): string => objectOf(row, jsonIn)

/** The same for columns that hold no structs, arrays or maps: those are text. Spark would write some numbers in them differently. */
export const flatRowJson = (row: Row): string =>
  objectOf(row, (column, value) => {
    const json = jsonIn(column, value)
    return isCompound(value) ? JSON.stringify(json) : json
  })

function objectOf(row: Row, toJson: (column: string, value: unknown) => string | undefined): string {
  const fields: string[] = []
  for (const column in row) {
    const json = toJson(column, row[column])
    if (json !== undefined) fields.push(`${JSON.stringify(column)}:${json}`)
  }
  return `{${fields.join(',')}}`
}

const isCompound = (value: unknown) =>
  typeof value === 'object' && value !== null && !(value instanceof Date) && !(value instanceof Uint8Array)

// Not in the library's types yet: text that goes into the JSON as it is.
const { rawJSON } = JSON as unknown as { rawJSON(text: string): unknown }

function jsonIn(column: string, of: unknown): string | undefined {
  return JSON.stringify(of, function (this: Row, key, value) {
    const own = this[key]
    // JSON would leave it out, or make it a null or an empty object.
    if (isNoValue(own, value)) {
      const where = own === of ? `'${column}' is` : `'${column}' has, at '${key}',`
      throw new ManyworldsError('CONFIG_INVALID', `column ${where} ${kindInWords(own)}, which cannot be in a row`)
    }
    return asSparkReadsIt(own, value)
  })
}

const isNoValue = (own: unknown, made: unknown): boolean =>
  typeof made === 'function' ||
  typeof made === 'symbol' ||
  (own instanceof Date && Number.isNaN(own.getTime())) ||
  isPromise(own)

/** `made` may be what a `toJSON` has made already of `own`. */
function asSparkReadsIt(own: unknown, made: unknown): unknown {
  if (typeof own === 'bigint') return rawJSON(String(own))
  if (typeof own === 'number') return Number.isFinite(own) ? own : String(own)
  if (typeof own !== 'object' || own === null) return made
  if (own instanceof Uint8Array) return Buffer.from(own.buffer, own.byteOffset, own.byteLength).toString('base64')
  if (ArrayBuffer.isView(own) && !(own instanceof DataView)) return Array.from(own as unknown as Iterable<unknown>)
  if (own instanceof Set) return [...own]
  if (own instanceof Map) {
    const named = [...own.keys()].every((name) => typeof name === 'string')
    return named ? Object.fromEntries(own) : [...own]
  }
  if (own instanceof Error && !('toJSON' in own)) return { name: own.name, message: own.message }
  return made
}
