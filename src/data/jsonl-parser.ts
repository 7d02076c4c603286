import type { ParsedRow } from './data-set.ts'
import { jsonProblem } from './json-problem.ts'
import { NOT_UTF8, type RowLimits, type RowParser, textOf, tooLong } from './text-rows.ts'

const NEWLINE = 0x0a

/** Parses lines of JSON, in linear time, however the bytes are split into chunks. */
export class JsonlParser implements RowParser {
  readonly #limits: RowLimits
  /** The beginning of an incomplete line, and its length in bytes. */
  #pieces: Buffer[] = []
  #bytes = 0
  #line = 1

  constructor(limits: RowLimits) {
    this.#limits = limits
  }

  *push(chunk: Buffer): Generator<ParsedRow> {
    let from = 0
    for (let to = chunk.indexOf(NEWLINE); to >= 0; to = chunk.indexOf(NEWLINE, from)) {
      this.#add(chunk.subarray(from, to))
      yield* this.#lineEnds()
      from = to + 1
    }
    if (from < chunk.length) this.#add(chunk.subarray(from))
  }

  *end(): Generator<ParsedRow> {
    if (this.#bytes > 0) yield* this.#lineEnds()
  }

  /** Keeps a piece of the line. If the line is too long, keeps only its length. */
  #add(piece: Buffer): void {
    this.#bytes += piece.length
    if (this.#bytes > this.#limits.maxRowBytes) this.#pieces = []
    else this.#pieces.push(piece)
  }

  *#lineEnds(): Generator<ParsedRow> {
    const line = this.#line++
    const [pieces, bytes] = [this.#pieces, this.#bytes]
    this.#pieces = []
    this.#bytes = 0
    const { maxRowBytes } = this.#limits
    if (bytes > maxRowBytes) yield { line, problem: tooLong(bytes, maxRowBytes) }
    else {
      const row = parsed(pieces.length === 1 ? pieces[0]! : Buffer.concat(pieces, bytes), line)
      if (row) yield row
    }
  }
}

function parsed(bytes: Buffer, line: number): ParsedRow | undefined {
  const text = textOf(bytes)
  if (text === undefined) return { line, problem: NOT_UTF8 }
  try {
    return { line, row: JSON.parse(text) }
  } catch (cause) {
    // JSON allows no other white space. A line that ends with CR LF still has the CR.
    if (/^[ \t\r]*$/.test(text)) return undefined
    const { column, problem } = jsonProblem(text) ?? { problem: (cause as Error).message }
    return { line, column, problem: `not valid JSON: ${problem}`, cause }
  }
}
