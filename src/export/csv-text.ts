import type { Column, Table } from './columns.ts'
import { jsonText } from './json-text.ts'

/**
 * A text that begins like this would be a formula in a spreadsheet, and formulas can run programs and send data away. The last four
 * are the same signs in full width, which some spreadsheets take for them.
 */
const FORMULA = /^[=+\-@\t\r\n\uff1d\uff0b\uff0d\uff20]/
const NEEDS_QUOTES = /[",\r\n]/

export const csvHeader = ({ columns }: Table<never>): string => `${columns.map(({ name }) => name).join(',')}\n`

/** A line as RFC 4180 has it, ending with LF. */
export const csvLine = <Row>({ columns, runId }: Table<Row>, row: Row): string =>
  `${columns.map((column) => quoted(cellOf(column, row, runId))).join(',')}\n`

function cellOf<Row>({ type, value: read }: Column<Row>, row: Row, runId: string): string {
  const value = read(row, runId)
  if (value === undefined || value === null) return ''
  switch (type) {
    case 'json':
      // Of a text it begins with a quote, so it is never a formula.
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
