import { CsvRecords, fieldsOf } from './csv-records.ts'
import { shortly } from './data-error.ts'
import type { BadRow, ParsedRow } from './data-set.ts'
import { NOT_UTF8, type RowLimits, type RowParser, textOf } from './text-rows.ts'

const CR = 0x0d

/** Parses the rows of a CSV file into objects, with the column names as keys. */
export class CsvParser implements RowParser {
  readonly #records: CsvRecords
  readonly #delimiter: string
  #columns: readonly string[] | undefined

  /** `columns`: the column names, if the file has no header. */
  constructor({ maxRowBytes }: RowLimits, delimiter: string, columns: readonly string[] | undefined) {
    this.#records = new CsvRecords(delimiter.charCodeAt(0), maxRowBytes)
    this.#delimiter = delimiter
    this.#columns = columns
  }

  *push(chunk: Buffer): Generator<ParsedRow> {
    for (const record of this.#records.push(chunk)) {
      const row = 'bytes' in record ? this.#row(record) : this.#bad(record)
      if (row) yield row
    }
  }

  *end(): Generator<ParsedRow> {
    for (const record of this.#records.end()) {
      const row = 'bytes' in record ? this.#row(record) : this.#bad(record)
      if (row) yield row
    }
  }

  #row({ line, bytes }: { readonly line: number; readonly bytes: Buffer }): ParsedRow | undefined {
    const end = bytes.at(-1) === CR ? bytes.length - 1 : bytes.length
    if (end === 0) return undefined
    const text = textOf(bytes.subarray(0, end))
    if (text === undefined) return this.#bad({ line, problem: NOT_UTF8 })
    const fields = fieldsOf(text, this.#delimiter)
    if (this.#columns === undefined) return this.#header(line, fields)
    if (fields.length !== this.#columns.length)
      return {
        line,
        problem: `the row has ${counted(fields.length, 'field')}, but there are ${counted(this.#columns.length, 'column')} (${shortly(this.#columns.join(this.#delimiter))})`,
      }
    // Not by assignment: a column may be named `__proto__`.
    return { line, row: Object.fromEntries(this.#columns.map((name, place) => [name, fields[place]])) }
  }

  /** Without a header, no row can be interpreted, so an error there ends the reading. */
  #bad(bad: BadRow): BadRow {
    return this.#columns === undefined ? { ...bad, isLast: true } : bad
  }

  #header(line: number, names: readonly string[]): BadRow | undefined {
    const twice = names.find((name, place) => names.indexOf(name) < place)
    if (twice !== undefined)
      return { line, problem: `the header has two columns named ${shortly(twice)}`, isLast: true }
    this.#columns = names
    return undefined
  }
}

const counted = (number: number, noun: string) => `${number} ${noun}${number === 1 ? '' : 's'}`
