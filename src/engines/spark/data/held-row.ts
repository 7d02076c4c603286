import { type Budget, isNoValue, jsonText } from './json-text.ts'
import { inColumn, Misfit } from './misfit.ts'
import { kindInWords } from './words.ts'

/** A row of the first batch. It is kept as values until the batch is full, because only then the column types are known. */
export interface HeldRow {
  readonly id: string
  readonly fields: Readonly<Record<string, unknown>>
  /** About how many characters it has as JSON. */
  readonly chars: number
}

/** Copies the values, because the caller may change them until then. Arrays and objects become JSON text now, as they would later. */
export function heldRow(id: string, row: Readonly<Record<string, unknown>>, budget: Budget): HeldRow {
  const fields: Record<string, unknown> = Object.create(null)
  let chars = 0
  for (const column in row) {
    const value = inColumn(column, () => held(row[column], budget))
    fields[column] = value
    chars +=
      column.length + (typeof value === 'string' ? value.length : value instanceof Uint8Array ? value.length * 2 : 8)
  }
  return { id, fields, chars }
}

function held(value: unknown, budget: Budget): unknown {
  if (isNoValue(value)) throw new Misfit(`${kindInWords(value)}, which cannot be in a row`)
  if (typeof value !== 'object' || value === null) return value
  if (value instanceof Date) return new Date(value)
  if (value instanceof Uint8Array) return new Uint8Array(value)
  const json = jsonText(value, budget)
  return json?.startsWith('"') ? JSON.parse(json) : json
}
