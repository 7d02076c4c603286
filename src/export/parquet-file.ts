import { setImmediate as nextTurn } from 'node:timers/promises'
import type { SchemaElement } from 'hyparquet'
import type { ColumnSource } from 'hyparquet-writer'
import type { Column, ListType, ScalarType, Table } from './columns.ts'
import { jsonText } from './json-text.ts'

/** A row group is held in memory until it is written. */
const GROUP_ROWS = 10_000
const GROUP_CHARS = 16 * 1024 * 1024

const TYPES: Readonly<Record<ScalarType, Partial<SchemaElement>>> = {
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

const ELEMENTS: Readonly<Record<ListType, Partial<SchemaElement>>> = {
  integers: { type: 'INT32' },
  reals: { type: 'DOUBLE' },
  booleans: { type: 'BOOLEAN' },
}

const isList = (type: Column<never>['type']): type is ListType =>
  typeof type === 'string' && Object.hasOwn(ELEMENTS, type)

/** Lists have the three levels that the format requires. */
function elementsOf({ name, type }: Pick<Column<never>, 'name' | 'type'>): SchemaElement[] {
  const optional = { name, repetition_type: 'OPTIONAL' } as const
  if (typeof type === 'object') {
    const fields = Object.entries(type.struct).flatMap(([field, of]) => elementsOf({ name: field, type: of }))
    return [{ ...optional, num_children: Object.keys(type.struct).length }, ...fields]
  }
  if (!isList(type)) return [{ ...optional, ...TYPES[type] }]
  return [
    { ...optional, converted_type: 'LIST', num_children: 1 },
    { name: 'list', repetition_type: 'REPEATED', num_children: 1 },
    { name: 'element', repetition_type: 'REQUIRED', ...ELEMENTS[type] },
  ]
}

/** Writes a table as a Parquet file, one row group after the other. Returns the number of rows. */
export async function writeParquet(
  table: Table<never>,
  path: string,
  version: string,
  each: (row: never, write: () => void) => void,
): Promise<number> {
  const { ParquetWriter, fileWriter } = await import('hyparquet-writer')
  const { columns, runId } = table
  const schema: SchemaElement[] = [{ name: 'root', num_children: columns.length }, ...columns.flatMap(elementsOf)]
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
    // Reading and writing are synchronous, so yield to let signals be handled.
    await nextTurn()
  }
  for await (const row of table.rows()) {
    each(row, () => {
      const values = (columns as readonly Column<never>[]).map((column) => parquetValue(column, row, runId))
      for (const [place, value] of values.entries()) {
        data[place]!.push(value)
        if (typeof value === 'string') chars += value.length
        else if (Array.isArray(value)) chars += 8 * value.length
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
  if (typeof type === 'object')
    return Object.fromEntries(
      Object.entries(type.struct).map(([name, of]) => [
        name,
        parquetValue({ name, type: of, value: () => (value as Record<string, unknown>)[name] }, row, runId),
      ]),
    )
  switch (type) {
    case 'json':
      return jsonText(value)
    case 'time':
      return new Date(value as number)
    case 'integer':
      // Agents may report anything as tokens. The column `usage` has the original value.
      return Number.isSafeInteger(value) ? BigInt(value as number) : null
    default:
      return value
  }
}
