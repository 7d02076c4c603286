import { Misfit } from './misfit.ts'
import { isPromise, kindInWords } from './words.ts'

/** What is left of the values, holes of arrays among them, that one row may have: what is shared or sparse can be endless. */
export interface Budget {
  values: number
}

export function spend(budget: Budget, values: number): void {
  budget.values -= values
  if (budget.values < 0) throw new Misfit('of too many values for one row')
}

// Not in the library's types yet: text that goes into the JSON as it is.
const { rawJSON } = JSON as unknown as { rawJSON(text: string): unknown }

/** Any value as JSON. Bytes are base64; what JSON has no number for is text. Undefined, if it stands for nothing. */
export function jsonText(of: unknown, budget: Budget): string | undefined {
  return JSON.stringify(of, function (this: Readonly<Record<string, unknown>>, key, made) {
    const own = this[key]
    spend(budget, 1)
    // JSON would leave it out, or make it a null or an empty object.
    if (isNoValue(own, made)) {
      const misfit = new Misfit(`${kindInWords(own)}, which cannot be in a row`)
      if (own !== of) misfit.path.push(key)
      throw misfit
    }
    if (Array.isArray(own)) spend(budget, own.length)
    return jsonValue(own, made)
  })
}

export const isNoValue = (own: unknown, made: unknown = own): boolean =>
  typeof made === 'function' ||
  typeof made === 'symbol' ||
  (own instanceof Date && Number.isNaN(own.getTime())) ||
  isPromise(own)

/** `made` may be what a `toJSON` has made already of `own`. */
function jsonValue(own: unknown, made: unknown): unknown {
  if (typeof own === 'bigint') return rawJSON(String(own))
  if (Object.is(own, -0)) return rawJSON('-0')
  if (typeof own === 'number') return Number.isFinite(own) ? own : String(own)
  if (typeof own !== 'object' || own === null) return made
  if (own instanceof Uint8Array) return base64(own)
  if (ArrayBuffer.isView(own) && !(own instanceof DataView)) return Array.from(own as unknown as Iterable<unknown>)
  if (own instanceof Set) return [...own]
  if (own instanceof Map) {
    const named = [...own.keys()].every((name) => typeof name === 'string')
    return named ? Object.fromEntries(own) : [...own]
  }
  if (own instanceof Error && !('toJSON' in own)) return { name: own.name, message: own.message }
  return made
}

export const base64 = (bytes: Uint8Array): string =>
  Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('base64')
