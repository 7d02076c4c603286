import { setImmediate as nextTurn } from 'node:timers/promises'
import type { SchemaElement } from 'hyparquet'
import type { ColumnSource } from 'hyparquet-writer'
import type { Column, ColumnType, Table } from './columns.ts'
import { jsonText } from './json-text.ts'

/** A row group is held in memory until it is written. */
const GROUP_ROWS = 10_000
const GROUP_CHARS = 16 * 1024 * 1024

const TYPES: Readonly<Record<ColumnType, Partial<SchemaElement>>> = {
  text: { type: 'BYTE_ARRAY', converted_type: 'UTF8' },
  json: { type: 'BYTE_ARRAY', converted_type: 'UTF8' },
  integer: { type: 'INT64' },
  real: { type: 'DOUBLE' },
  boolean: { type: 'BOOLEAN' },
  time: {
    ...{ type: 'INT64', converted_type: 'TIMESTAMP_MILLIS' },
    logical_type: { type: 'TIMESTAMP', isAdjustedToUTC: true, unit: 'MILLIS' },
  },
}

/** Writes a table as a Parquet file, one row group after another; answers how many rows there were. */
export async function writeParquet(
  table: Table<never>,
  path: string,
  version: string,
  each: (row: never, write: () => void) => void,
): Promise<number> {
  const { ParquetWriter, fileWriter } = await import('hyparquet-writer')
  const { columns, runId } = table
  const schema: SchemaElement[] = [
    { name: 'root', num_children: columns.length },
    ...columns.map(({ name, type }): SchemaElement => ({ name, repetition_type: 'OPTIONAL', ...TYPES[type] })),
  ]
  const kvMetadata = Object.entries({ manyworlds: version, run: runId }).map(([key, value]) => ({ key, value }))
  const writer = new ParquetWriter({ writer: fileWriter(path), schema, kvMetadata })
  let data: unknown[][] = columns.map(() => [])
  let [rows, chars, total] = [0, 0, 0]
  const flush = async () => {
    const columnData = columns.map(({ name }, place): ColumnSource => ({ name, data: data[place]! }))
    if (rows > 0) await writer.write({ columnData, rowGroupSize: rows })
    total += rows
    data = columns.map(() => [])
    rows = chars = 0
    // Neither reading nor writing waits for anything: a signal must get its turn.
    await nextTurn()
  }
  for (const row of table.rows()) {
    each(row, () => {
      const values = (columns as readonly Column<never>[]).map((column) => parquetValue(column, row, runId))
      for (const [place, value] of values.entries()) {
        data[place]!.push(value)
        if (typeof value === 'string') chars += value.length
      }
    })
    if (++rows >= GROUP_ROWS || chars >= GROUP_CHARS) await flush()
  }
  await flush()
  await writer.finish()
  return total
}

function parquetValue({ type, value: read }: Column<never>, row: never, runId: string): unknown {
  const value = read(row, runId)
  if (value === undefined || value === null) return null
  switch (type) {
    case 'json':
      return jsonText(value)
    case 'time':
      return new Date(value as number)
    case 'integer':
      // Agents report what they like as tokens; `usage` has it as it is.
      return Number.isSafeInteger(value) ? BigInt(value as number) : null
    default:
      return value
  }
}
