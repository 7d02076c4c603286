import type { BadRow } from './data-set.ts'
import { tooLong } from './text-rows.ts'

/** The bytes of a CSV record, or what is wrong with it. */
export type CsvRecord = { readonly line: number; readonly bytes: Buffer } | BadRow

const QUOTE = 0x22
const LF = 0x0a
const CR = 0x0d

/** The state of the parser within a record. */
const AT = {
  fieldStart: 0,
  unquoted: 1,
  quoted: 2,
  /** After a quote inside quotes: it closes the field, or is a literal quote if another quote follows. */
  quoteInQuoted: 3,
  /** After a carriage return: only a line feed may follow. */
  carriageReturn: 4,
  /** The record is malformed: skip to the end of the line. */
  bad: 5,
} as const

/**
 * Splits bytes into the records of RFC 4180: a line break inside quotes belongs to its field. Works on bytes, because no byte of
 * a multi-byte UTF-8 character looks like a quote, a delimiter or a line break. Looks at each byte once.
 */
export class CsvRecords {
  readonly #delimiter: number
  readonly #maxBytes: number
  /** 1 for bytes that are special outside quotes. */
  readonly #special = new Uint8Array(256)
  #pieces: Buffer[] = []
  #bytes = 0
  #state: number = AT.fieldStart
  /** The current line, and the line on which the record started. */
  #line = 1
  #startLine = 1
  /** The offset of the current line in the record, in bytes. */
  #lineAt = 0
  #problem:
    | { readonly line: number; readonly lineAt: number; readonly at: number; readonly problem: string }
    | undefined

  constructor(delimiter: number, maxBytes: number) {
    this.#delimiter = delimiter
    this.#maxBytes = maxBytes
    for (const byte of [delimiter, QUOTE, LF, CR]) this.#special[byte] = 1
  }

  *push(chunk: Buffer): Generator<CsvRecord> {
    let from = 0
    for (let i = 0; (i = this.#nextOfNote(chunk, i, from)) < chunk.length; i++) {
      const byte = chunk[i]!
      if (byte === LF && this.#state !== AT.quoted) {
        this.#keep(chunk, from, i)
        from = i + 1
        yield* this.#recordEnds()
      } else this.#state = this.#after(byte, this.#bytes + i - from)
    }
    this.#keep(chunk, from, chunk.length)
    if (this.#bytes > this.#maxBytes && this.#state === AT.quoted) yield this.#unclosed()
  }

  /** Skips bytes without meaning, which are most of them. Inside quotes, counts line breaks. */
  #nextOfNote(chunk: Buffer, start: number, from: number): number {
    let at = start
    if (this.#state === AT.quoted) {
      const quote = chunk.indexOf(QUOTE, at)
      const end = quote < 0 ? chunk.length : quote
      for (let lf = chunk.indexOf(LF, at); lf >= 0 && lf < end; lf = chunk.indexOf(LF, lf + 1))
        this.#nextLine(this.#bytes + lf - from + 1)
      return end
    }
    if (this.#state === AT.unquoted) while (at < chunk.length && this.#special[chunk[at]!] === 0) at++
    if (this.#state !== AT.bad) return at
    const lf = chunk.indexOf(LF, at)
    return lf < 0 ? chunk.length : lf
  }

  *end(): Generator<CsvRecord> {
    if (this.#state === AT.quoted) yield this.#unclosed()
    else if (this.#bytes > 0) yield* this.#recordEnds()
  }

  #nextLine(at: number): void {
    this.#line++
    this.#lineAt = at
  }

  /** `at`: the offset of the byte in its record. */
  #after(byte: number, at: number): number {
    switch (this.#state) {
      case AT.fieldStart:
        if (byte === QUOTE) return AT.quoted
        break
      case AT.unquoted:
        if (byte === QUOTE)
          return this.#bad(at, 'a quote inside an unquoted field; put the field in quotes and double the quote')
        break
      case AT.quoted:
        return byte === QUOTE ? AT.quoteInQuoted : AT.quoted
      case AT.quoteInQuoted:
        if (byte === QUOTE) return AT.quoted
        if (byte !== this.#delimiter && byte !== CR)
          return this.#bad(at, 'text after the closing quote of a field; double a quote inside quotes')
        break
      case AT.carriageReturn:
        return this.#bad(at - 1, 'a carriage return without a line feed; end lines with LF or CR LF')
      default:
        return AT.bad
    }
    if (byte === this.#delimiter) return AT.fieldStart
    return byte === CR ? AT.carriageReturn : AT.unquoted
  }

  #bad(at: number, problem: string): number {
    this.#problem = { line: this.#line, lineAt: this.#lineAt, at, problem }
    return AT.bad
  }

  /** Keeps a piece of the record. If the record is too long, keeps only its length. */
  #keep(chunk: Buffer, from: number, to: number): void {
    if (from === to) return
    this.#bytes += to - from
    if (this.#bytes > this.#maxBytes) this.#pieces = []
    else this.#pieces.push(chunk.subarray(from, to))
  }

  *#recordEnds(): Generator<CsvRecord> {
    const [line, pieces, bytes, problem] = [this.#startLine, this.#pieces, this.#bytes, this.#problem]
    this.#nextLine(0)
    this.#startLine = this.#line
    this.#pieces = []
    this.#bytes = 0
    this.#state = AT.fieldStart
    this.#problem = undefined
    if (bytes > this.#maxBytes) yield { line, problem: tooLong(bytes, this.#maxBytes) }
    else {
      const record = pieces.length === 1 ? pieces[0]! : Buffer.concat(pieces, bytes)
      if (problem === undefined) yield { line, bytes: record }
      else {
        const column = record.toString('utf8', problem.lineAt, problem.at).length + 1
        yield { line: problem.line, column, problem: problem.problem }
      }
    }
  }

  /** A quoted field without an end. Everything that follows would belong to the field. */
  #unclosed(): CsvRecord {
    const problem =
      this.#bytes > this.#maxBytes
        ? `a quoted field that starts in this row exceeds maxRowBytes (${this.#maxBytes}); its closing quote is probably missing`
        : 'a quoted field that starts in this row has no closing quote'
    return { line: this.#startLine, problem, isLast: true }
  }
}

/** Returns the unquoted fields of a well-formed record. */
export function fieldsOf(record: string, delimiter: string): string[] {
  // Most records have no quotes at all.
  if (!record.includes('"')) return record.split(delimiter)
  const fields: string[] = []
  for (let at = 0; ; ) {
    if (record[at] === '"') {
      let close = at + 1
      for (; ; close += 2) {
        close = record.indexOf('"', close)
        if (record[close + 1] !== '"') break
      }
      fields.push(record.slice(at + 1, close).replaceAll('""', '"'))
      at = close + 1
    } else {
      const end = record.indexOf(delimiter, at)
      fields.push(end < 0 ? record.slice(at) : record.slice(at, end))
      at = end < 0 ? record.length : end
    }
    if (at >= record.length) return fields
    at++
  }
}
