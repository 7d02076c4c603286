import { ManyworldsError } from '../errors.ts'
import type { ErrorItem, Packed } from '../protocol/messages.ts'
import { pack } from '../protocol/pack.ts'
import { readPacked } from '../protocol/read-packed.ts'
import { decode, type Encoded, encode } from '../store/values.ts'
import { formsOf, jsonEscaped, LEAST_SECRET_CHARS, REDACTED, REDACTED_BYTE } from './forms.ts'
import { mapTexts } from './map-texts.ts'

export interface Secrets {
  /** Values shorter than `LEAST_SECRET_CHARS` are ignored. */
  readonly values: readonly string[]
  /** Must have the flag `g`; see `config.ts`. */
  readonly patterns: readonly RegExp[]
}

/**
 * Removes the secrets of a run from everything that it prints, reports and stores. Values are recognized in the forms of
 * `forms.ts`. Serialized values are searched without decoding, and decoded only if something is found; patterns require decoding.
 */
export class Redactor {
  readonly #patterns: readonly RegExp[]
  /** The forms in texts, in JSON text, and in bytes. */
  readonly #forms: readonly string[]
  readonly #inJson: readonly string[]
  readonly #inBytes: readonly Buffer[]
  readonly #fewestChars: number
  readonly #key: string
  /** How many answers and results were not stored because they contain secrets, by the name of their service. */
  readonly skipped = new Map<string, number>()

  private constructor(values: readonly string[], patterns: readonly RegExp[]) {
    this.#patterns = patterns
    this.#forms = unique(values.flatMap(formsOf))
    this.#key = JSON.stringify([values, patterns.map(String)])
    this.#inJson = unique(this.#forms.map(jsonEscaped))
    this.#inBytes = uniqueBytes(this.#forms.flatMap(bytesOf))
    this.#fewestChars = this.#forms.reduce((fewest, { length }) => Math.min(fewest, length), Number.POSITIVE_INFINITY)
  }

  /** Returns undefined if there are no secrets, so that nothing is searched. */
  static of({ values, patterns }: Secrets): Redactor | undefined {
    const secrets = values.filter((value) => value.length >= LEAST_SECRET_CHARS && !REDACTED.includes(value))
    return secrets.length + patterns.length === 0 ? undefined : new Redactor(secrets, patterns)
  }

  /** Equal for two redactors with the same secrets. */
  get key(): string {
    return this.#key
  }

  text(text: string): string {
    const spans = this.#spansIn(text)
    return spans === undefined ? text : replaced(text, spans)
  }

  /** Returns a copy without secrets, or the value itself if it has none. */
  value<T>(value: T): T {
    return mapTexts(value, this) as T
  }

  /** Bytes are searched for values only, not for patterns. */
  bytes(bytes: Uint8Array): Uint8Array {
    const original = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
    let copy: Buffer | undefined
    for (const form of this.#inBytes)
      for (let at = original.indexOf(form); at >= 0; at = original.indexOf(form, at + form.length)) {
        copy ??= Buffer.from(original)
        copy.fill(REDACTED_BYTE, at, at + form.length)
      }
    return copy ?? bytes
  }

  /** Removes secrets from a result of `pack`; returns the same object if it has none. */
  packed(packed: Packed): Packed {
    if (!this.#mayHave(packed)) return packed
    const value = readPacked(packed)
    const clean = this.value(value)
    return Object.is(clean, value) ? packed : pack(clean)
  }

  encoded(encoded: Encoded): Encoded {
    if (encoded === null || !this.mayHave(encoded)) return encoded
    const value = decode(encoded)
    const clean = this.value(value)
    return Object.is(clean, value) ? encoded : encode(clean)
  }

  /** Whether the value contains a secret. */
  has(packed: Packed): boolean {
    if (!this.#mayHave(packed)) return false
    const value = readPacked(packed)
    return !Object.is(this.value(value), value)
  }

  /** Throws if a name contains a secret: names are stored and printed everywhere, and things are looked up by them. */
  checkName(name: string, what: string): void {
    const clean = this.text(name)
    if (clean !== name)
      throw new ManyworldsError(
        'TASK_INVALID',
        `${what} contains a secret of the run: '${clean}'. Ids are not redacted, because tasks are looked up by id; give another one`,
      )
  }

  error(item: ErrorItem): ErrorItem {
    const { name, message, stack } = item
    return {
      ...item,
      name: this.text(name),
      message: this.text(message),
      stack: stack === undefined ? undefined : this.text(stack),
      ...('thrown' in item && { thrown: this.#thrown(item.thrown) }),
    }
  }

  /** The thrown value is optional, so it is dropped if it cannot be decoded. */
  #thrown(thrown: Packed): Packed {
    try {
      return this.packed(thrown)
    } catch {
      return undefined
    }
  }

  #mayHave(packed: Packed): boolean {
    if (packed instanceof String) return this.mayHave(packed.valueOf())
    if (packed instanceof Uint8Array) return this.mayHave(packed)
    // Small data is not serialized.
    return typeof packed === 'string' || (typeof packed === 'object' && packed !== null)
  }

  /** Whether JSON text, or v8-serialized bytes, may contain a secret. */
  mayHave(serialized: string | Uint8Array): boolean {
    if (this.#patterns.length > 0) return true
    if (typeof serialized === 'string') {
      for (const form of this.#inJson) if (serialized.includes(form)) return true
      return false
    }
    const bytes = Buffer.from(serialized.buffer, serialized.byteOffset, serialized.byteLength)
    return this.#inBytes.some((form) => bytes.includes(form))
  }

  /** The positions of secrets; undefined if there are none. */
  #spansIn(text: string): [from: number, to: number][] | undefined {
    let spans: [number, number][] | undefined
    if (text.length >= this.#fewestChars)
      for (const form of this.#forms)
        for (let at = text.indexOf(form); at >= 0; at = text.indexOf(form, at + form.length))
          (spans ??= []).push([at, at + form.length])
    for (const pattern of this.#patterns)
      for (const { 0: match, index } of text.matchAll(pattern))
        if (match !== '') (spans ??= []).push([index, index + match.length])
    return spans
  }
}

/** Replaces all spans. Overlapping ones are merged, because the rest of one would reveal it. */
function replaced(text: string, spans: [from: number, to: number][]): string {
  spans.sort(([a], [b]) => a - b)
  let clean = ''
  let at = 0
  for (const [from, to] of spans) {
    // A span that starts inside the previous one is part of it.
    if (from >= at) clean += text.slice(at, from) + REDACTED
    at = Math.max(at, to)
  }
  return clean + text.slice(at)
}

const unique = (texts: readonly string[]): string[] => [...new Set(texts)]

const uniqueBytes = (all: readonly Buffer[]): Buffer[] => [
  ...new Map(all.map((bytes) => [bytes.toString('latin1'), bytes])).values(),
]

/** v8 writes texts with one or two bytes per character; other code writes UTF-8. */
function bytesOf(form: string): Buffer[] {
  const written = [Buffer.from(form), Buffer.from(form, 'utf16le')]
  return isLatin1(form) ? [...written, Buffer.from(form, 'latin1')] : written
}

function isLatin1(text: string): boolean {
  for (let i = 0; i < text.length; i++) if (text.charCodeAt(i) > 0xff) return false
  return true
}
