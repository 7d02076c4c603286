import type { SearchHit } from '../api.ts'

const BEFORE = 40
const EXCERPT_CHARS = 200
/** The most objects of one value that are searched. */
const MOST_OBJECTS = 1_000_000

export type Excerpt = Pick<SearchHit, 'excerpt' | 'from' | 'length'>

/** A literal text to search for, ignoring case. */
export class Needle {
  readonly #text: string
  /** The text as it is escaped inside JSON. */
  readonly #escaped: string

  constructor(text: string) {
    this.#text = text.toLowerCase()
    this.#escaped = JSON.stringify(text).slice(1, -1).toLowerCase()
  }

  /** Finds the text in plain text. */
  inText(text: string): Excerpt | undefined {
    const lower = text.toLowerCase()
    const at = lower.indexOf(this.#text)
    if (at < 0) return undefined
    // The lower case of some letters is longer. Positions in it are then not those in the text.
    return excerptOf(lower.length === text.length ? text : lower, at, this.#text.length)
  }

  /** False if a stored value cannot contain the text: a fast check of JSON without decoding it. */
  mayBeIn(json: string): boolean {
    const lower = json.toLowerCase()
    return lower.includes(this.#escaped) || (this.#escaped !== this.#text && lower.includes(this.#text))
  }

  /** Finds the text in the texts, keys and numbers inside a value; else in the value as JSON. */
  inValue(value: unknown): Excerpt | undefined {
    return this.#inside(value) ?? this.#inJson(value)
  }

  #inside(value: unknown): Excerpt | undefined {
    const seen = new Set<object>()
    const stack: unknown[] = [value]
    while (stack.length > 0) {
      const one = stack.pop()
      if (typeof one === 'string') {
        const found = this.inText(one)
        if (found) return found
      } else if (typeof one === 'object' && one !== null && !ArrayBuffer.isView(one) && !seen.has(one)) {
        if (seen.add(one).size > MOST_OBJECTS) return undefined
        const parts = partsOf(one)
        // Not with `...`: a list may have more elements than a call may have arguments.
        for (let at = Math.min(parts.length, MOST_OBJECTS) - 1; at >= 0; at--) stack.push(parts[at])
      }
    }
    return undefined
  }

  #inJson(value: unknown): Excerpt | undefined {
    try {
      return this.inText(JSON.stringify(value) ?? '')
    } catch {
      // A cycle, or a bigint. Its texts were searched.
      return undefined
    }
  }
}

/**
 * The parts of an object that are searched. `wire`, the raw reply of a model, comes last, because it repeats the other
 * fields.
 */
function partsOf(object: object): unknown[] {
  if (Array.isArray(object)) return object
  if (object instanceof Map) return [...object].flat()
  if (object instanceof Set) return [...object]
  if (object instanceof Error) return [object.message, object.stack, object.cause]
  const { wire, ...rest } = object as Record<string, unknown>
  return wire === undefined ? Object.values(rest) : [...Object.values(rest), wire]
}

/** One line around a place in a text. */
function excerptOf(text: string, at: number, length: number): Excerpt {
  const shown = Math.min(length, EXCERPT_CHARS)
  const start = Math.max(0, at - BEFORE)
  const end = Math.min(text.length, Math.max(start + EXCERPT_CHARS, at + shown))
  const lead = start > 0 ? '…' : ''
  const excerpt = `${lead}${oneLine(text.slice(start, end))}${end < text.length ? '…' : ''}`
  return { excerpt, from: at - start + lead.length, length: shown }
}

/** Replaces each line break and tab by one space, so that positions stay the same. */
const oneLine = (text: string) => text.replaceAll(/[\n\r\t\v\f\u2028\u2029]/g, ' ')
