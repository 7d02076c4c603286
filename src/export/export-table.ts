import { ManyworldsError } from '../errors.ts'
import { ownPackage } from '../own-package.ts'
import type { Table } from './columns.ts'
import { csvHeader, csvLine } from './csv-text.ts'
import type { Format } from './formats.ts'
import { jsonlLine } from './jsonl-lines.ts'
import { failed, OutFile } from './out-file.ts'
import { writeParquet } from './parquet-file.ts'
import { fileOutput, type TextOutput } from './text-output.ts'

interface FileOptions {
  readonly force: boolean
  /** If aborted, the file is removed. */
  readonly signal: AbortSignal
}

/** Writes a table to a file that appears only when it is complete. Returns the number of rows. */
export async function exportToFile(
  table: Table<never>,
  format: Format,
  path: string,
  { force, signal }: FileOptions,
): Promise<number> {
  const file = await OutFile.at(path, force)
  try {
    const rows =
      format === 'parquet'
        ? await writeParquet(table, file.path, ownPackage.version, (row, write) => {
            signal.throwIfAborted()
            naming(table, row, write)
          })
        : await exportText(table, format, await fileOutput(file.path), signal)
    signal.throwIfAborted()
    await file.keep()
    return rows
  } catch (error) {
    await file.discard()
    if (signal.aborted || ManyworldsError.is(error)) throw error
    throw failed(path, (error as Error).message, error)
  }
}

/** Writes a table as text and ends the output. Returns the number of rows. */
export async function exportText(
  table: Table<never>,
  format: 'csv' | 'jsonl',
  output: TextOutput,
  signal?: AbortSignal,
): Promise<number> {
  let rows = 0
  try {
    if (format === 'csv') await output.write(csvHeader(table))
    for await (const row of table.rows()) {
      signal?.throwIfAborted()
      rows++
      if (format === 'csv') await output.write(naming(table, row, () => csvLine(table, row)))
      else for (const piece of piecesOf(table, row)) await output.write(piece)
    }
  } finally {
    await output.end()
  }
  return rows
}

function* piecesOf(table: Table<never>, row: never): Generator<string> {
  try {
    yield* jsonlLine(table, row)
  } catch (cause) {
    throw unwritable(table, row, cause)
  }
}

/** Adds the name of the row to an error: a value may be too deep, or longer than a string can be. */
function naming<T>(table: Table<never>, row: never, write: () => T): T {
  try {
    return write()
  } catch (cause) {
    throw unwritable(table, row, cause)
  }
}

function unwritable(table: Table<never>, row: never, cause: unknown): ManyworldsError {
  if (ManyworldsError.is(cause)) return cause
  const message = cause instanceof Error ? cause.message : String(cause)
  return new ManyworldsError('EXPORT_FAILED', `cannot write ${table.nameOf(row)}: ${message}`, { cause })
}
