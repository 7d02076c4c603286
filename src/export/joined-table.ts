import { RunFile } from '../store/run-file.ts'
import type { Column, Table } from './columns.ts'

/** The rows of several runs of a store as one table. Runs are opened one after the other. */
export function joinedTable(
  { path, name, runs }: { readonly path: string; readonly name: string; readonly runs: readonly string[] },
  make: (run: RunFile) => Table<never>,
): Table<never> {
  /** The table that a row comes from. */
  const origins = new WeakMap<object, Table<never>>()
  const originOf = (row: object) => origins.get(row)!
  const { columns, what, line } = inRun(path, runs[0]!, make)
  const joined: Table<object> = {
    ...{ what, runId: name },
    columns: (columns as readonly Column<object>[]).map(({ value, ...column }) => ({
      ...column,
      value: (row) => value(row, originOf(row).runId),
    })),
    async *rows() {
      for (const id of runs) {
        using run = RunFile.in(path, id)
        // The run was removed in the meantime.
        if (run === undefined) continue
        const table = make(run)
        for await (const own of table.rows() as AsyncIterable<object>) {
          // A JSON line that is the row itself must name its run.
          const row = table.line ? own : { runId: table.runId, ...own }
          origins.set(row, table)
          yield row
        }
      }
    },
    ...(line && { line: (row) => originOf(row).line!(row as never) }),
    nameOf: (row) => `${originOf(row).nameOf(row as never)} of run ${originOf(row).runId}`,
    runOf: (row) => originOf(row).runId,
  }
  return joined as unknown as Table<never>
}

/** The part of the table that is the same for all runs. */
function inRun(path: string, id: string, make: (run: RunFile) => Table<never>): Table<never> {
  using run = RunFile.in(path, id)
  if (run === undefined) throw new Error(`run ${id} was removed`)
  return make(run)
}
