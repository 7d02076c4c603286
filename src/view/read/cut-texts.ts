import { beginningOf } from '../../text/beginning.ts'
import { type Json, setField, toLossless } from '../../trajectory/lossless-json.ts'

/** Longer texts are cut, unless the client requests them. */
export const MOST_CHARS = 20_000

export interface CutJson {
  readonly json: Json
  /** The number of characters that were left out. */
  readonly cut: number
}

/**
 * A value as lossless JSON in which long texts are cut: `{ "$": "cut", "value": BEGINNING, "length": N }`. Objects of the value that
 * have the key `$` themselves are marked by `toLossless`, so the mark is unambiguous.
 */
export function cutJson(value: unknown, most = MOST_CHARS): CutJson {
  let cut = 0
  const shorten = (json: Json): Json => {
    if (typeof json === 'string') {
      if (json.length <= most) return json
      const beginning = beginningOf(json, most)
      cut += json.length - beginning.length
      return { $: 'cut', value: beginning, length: json.length }
    }
    if (typeof json !== 'object' || json === null) return json
    if (Array.isArray(json)) return json.map(shorten)
    const fields: { [key: string]: Json } = {}
    for (const [key, inner] of Object.entries(json)) setField(fields, key, shorten(inner))
    return fields
  }
  const json = shorten(toLossless(value))
  return { json, cut }
}

/** A value as lossless JSON with complete texts. Undefined if they have more than `mostChars` characters. */
export function wholeJson(value: unknown, mostChars: number): Json | undefined {
  let left = mostChars
  const spend = (json: Json): void => {
    if (typeof json === 'string') left -= json.length
    else if (typeof json === 'object' && json !== null) for (const inner of Object.values(json)) spend(inner)
  }
  const json = toLossless(value)
  spend(json)
  return left < 0 ? undefined : json
}
