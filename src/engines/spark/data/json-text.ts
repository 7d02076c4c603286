import { Misfit } from './misfit.ts'
import { isPromise, kindInWords } from './words.ts'

/**
 * How many more values one row may have, counting the holes of arrays. Without this limit, a small object that is shared many
 * times, or a sparse array, could become endless JSON.
 */
export interface Budget {
  values: number
}

export function spend(budget: Budget, values: number): void {
  budget.values -= values
  if (budget.values < 0) throw new Misfit('made of too many values for one row')
}

// Not in TypeScript's types yet. Marks text that goes into the JSON unquoted.
const { rawJSON } = JSON as unknown as { rawJSON(text: string): unknown }

/** Any value as JSON. Bytes become base64; NaN and the infinities become text. Undefined if `toJSON` returns undefined. */
export function jsonText(of: unknown, budget: Budget): string | undefined {
  return JSON.stringify(of, function (this: Readonly<Record<string, unknown>>, key, made) {
    const own = this[key]
    spend(budget, 1)
    // JSON.stringify would omit it, or write null or an empty object.
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

/** `made`: the result of `toJSON` if `own` has one, else `own`. */
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
