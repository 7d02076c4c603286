import { signal } from '@preact/signals'
import { filterOf, sortOf } from '../run/filter-query.ts'
import { filterRows } from '../run/task-filter.ts'
import { sortRows } from '../run/task-sort.ts'
import { TaskTable } from '../run/task-table.ts'
import type { Source } from '../source/source.ts'

/** The tasks of a run in the order in which its page shows them, without those that are filtered out. */
export interface TaskOrder {
  readonly run: string
  readonly table: TaskTable
  readonly rows: Uint32Array
}

/** What the page of a run showed last. It stays while other pages are shown. */
export const taskOrder = signal<TaskOrder | undefined>(undefined)

export interface Neighbours {
  /** From 0; undefined: the order does not contain the task. */
  readonly position: number | undefined
  readonly count: number
  /** Ids. Undefined: there is none. */
  readonly previous: string | undefined
  readonly next: string | undefined
  readonly previousFailure: string | undefined
  readonly nextFailure: string | undefined
}

/** The tasks before and after a task. If the order does not contain it, the next one is the first of the order. */
export function neighboursOf({ table, rows }: TaskOrder, id: string): Neighbours {
  const row = table.rowOfId(id)
  const found = row === undefined ? -1 : rows.indexOf(row)
  const idAt = (place: number) => (rows[place] === undefined ? undefined : table.ids[rows[place]])
  let [before, after] = [found - 1, found + 1]
  while (before >= 0 && !table.isFailure(rows[before]!)) before--
  while (after < rows.length && !table.isFailure(rows[after]!)) after++
  return {
    position: found < 0 ? undefined : found,
    count: rows.length,
    previous: idAt(found - 1),
    next: idAt(found + 1),
    previousFailure: idAt(before),
    nextFailure: idAt(after),
  }
}

/** The order of a run: as its page showed it last or, if it was not opened, all its tasks. */
export async function orderOf(source: Source, run: string, signal: AbortSignal): Promise<TaskOrder> {
  if (taskOrder.value?.run === run) return taskOrder.value
  const table = new TaskTable()
  for await (const chunk of source.tasks(run, signal)) table.merge(chunk)
  const query = new URLSearchParams()
  const rows = filterRows(table, filterOf(query))
  const names = { agents: new Map(), workers: new Map() }
  // Another page may have set it in the meantime.
  if (taskOrder.value?.run !== run) taskOrder.value = { run, table, rows: sortRows(table, rows, sortOf(query), names) }
  return taskOrder.value
}
