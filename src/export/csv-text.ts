import type { Column, Table } from './columns.ts'
import { jsonText } from './json-text.ts'

/**
 * A text that starts like this would be a formula in a spreadsheet, and formulas can run programs and send data. The last four
 * are full-width forms of the same characters, which some spreadsheets also interpret.
 */
const FORMULA = /^[=+\-@\t\r\n\uff1d\uff0b\uff0d\uff20]/
const NEEDS_QUOTES = /[",\r\n]/

export const csvHeader = ({ columns }: Table<never>): string => `${columns.map(({ name }) => name).join(',')}\n`

/** A line in the format of RFC 4180, ending with LF. */
export const csvLine = <Row>({ columns, runId }: Table<Row>, row: Row): string =>
  `${columns.map((column) => quoted(cellOf(column, row, runId))).join(',')}\n`

function cellOf<Row>({ type, value: read }: Column<Row>, row: Row, runId: string): string {
  const value = read(row, runId)
  if (value === undefined || value === null) return ''
  switch (type) {
    case 'json':
      // The JSON of a text starts with a quote, so it is never a formula.
      return jsonText(value)
    case 'time':
      return new Date(value as number).toISOString()
    case 'text':
      return FORMULA.test(value as string) ? `'${value as string}` : (value as string)
    default:
      return String(value)
  }
}

const quoted = (cell: string): string => (NEEDS_QUOTES.test(cell) ? `"${cell.replaceAll('"', '""')}"` : cell)
