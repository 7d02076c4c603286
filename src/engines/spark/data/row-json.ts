type Row = Readonly<Record<string, unknown>>

/** A row as JSON, in the way that Spark reads values of its types from JSON. */
export const rowJson = (row: Row): string => JSON.stringify(row, asSparkReadsIt)

/** The same for columns that hold no structs, arrays or maps: those are text. Spark would write some numbers in them differently. */
export function flatRowJson(row: Row): string {
  const flat: Record<string, unknown> = {}
  for (const name in row) flat[name] = isCompound(row[name]) ? JSON.stringify(row[name], asSparkReadsIt) : row[name]
  return rowJson(flat)
}

const isCompound = (value: unknown) =>
  typeof value === 'object' && value !== null && !(value instanceof Date) && !(value instanceof Uint8Array)

// Not in the library's types yet: text that goes into the JSON as it is.
const { rawJSON } = JSON as unknown as { rawJSON(text: string): unknown }

/** `value` may be what a `toJSON` has made already; `this[key]` is the original. */
function asSparkReadsIt(this: Row, key: string, value: unknown): unknown {
  const own = this[key]
  if (typeof own === 'bigint') return rawJSON(String(own))
  if (typeof own === 'number') return Number.isFinite(own) ? own : String(own)
  if (typeof own !== 'object' || own === null) return value
  if (own instanceof Uint8Array) return Buffer.from(own.buffer, own.byteOffset, own.byteLength).toString('base64')
  if (ArrayBuffer.isView(own) && !(own instanceof DataView)) return Array.from(own as unknown as Iterable<unknown>)
  if (own instanceof Set) return [...own]
  if (own instanceof Map) {
    const named = [...own.keys()].every((name) => typeof name === 'string')
    return named ? Object.fromEntries(own) : [...own]
  }
  if (own instanceof Error && !('toJSON' in own)) return { name: own.name, message: own.message }
  return value
}
