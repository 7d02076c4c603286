import { STATES } from '../../../src/view/api.ts'
import type { TaskTable } from './task-table.ts'

/** From `low` to below `high`. */
export interface Range {
  readonly low: number
  readonly high: number
}

export const RANGE_COLUMNS = ['runMs', 'queuedMs', 'tokens', 'costUsd', 'reward'] as const
export type RangeColumn = (typeof RANGE_COLUMNS)[number]

/** Which tasks to show. Every field that is given must match. */
export interface TaskFilter {
  /** Positions in `STATES`; empty: all. */
  readonly states: readonly number[]
  readonly agent?: number
  readonly cause?: number
  readonly version?: number
  readonly worker?: number
  /** `none`: not graded. */
  readonly solved?: 'yes' | 'no' | 'none'
  /** A part of the id, in lower case. */
  readonly id: string
  readonly ranges: Readonly<Partial<Record<RangeColumn, Range>>>
  readonly withSubTasks: boolean
  /** Only these tasks, by their numbers. */
  readonly among?: ReadonlySet<number> | undefined
}

type Test = (row: number) => boolean
const SOLVED = { yes: 1, no: 0, none: Number.NaN } as const

/** The rows that match, in the order of the table. */
export function filterRows(table: TaskTable, filter: TaskFilter): Uint32Array {
  const tests = testsOf(table, filter)
  const rows = new Uint32Array(table.count)
  let count = 0
  next: for (let row = 0; row < rows.length; row++) {
    for (let place = 0; place < tests.length; place++) if (!tests[place]!(row)) continue next
    rows[count++] = row
  }
  return rows.subarray(0, count)
}

/** Cheap and selective tests first. */
function testsOf(table: TaskTable, filter: TaskFilter): Test[] {
  const tests: Test[] = []
  const { states, id, among } = filter
  if (!filter.withSubTasks && table.subTasks > 0) {
    const parent = table.column('parent')
    tests.push((row) => parent[row] === 0)
  }
  if (states.length > 0) {
    const [state, wanted] = [table.column('state'), STATES.map((_, place) => states.includes(place))]
    tests.push((row) => wanted[state[row]!]!)
  }
  for (const name of ['agent', 'cause', 'version', 'worker'] as const) {
    const wanted = filter[name]
    if (wanted === undefined) continue
    const column = table.column(name)
    tests.push((row) => column[row] === wanted)
  }
  if (filter.solved !== undefined) {
    const [column, wanted] = [table.column('solved'), SOLVED[filter.solved]]
    tests.push(Number.isNaN(wanted) ? (row) => Number.isNaN(column[row]) : (row) => column[row] === wanted)
  }
  for (const name of RANGE_COLUMNS) {
    const range = filter.ranges[name]
    if (!range) continue
    const { low, high } = range
    const column = table.column(name)
    tests.push((row) => column[row]! >= low && column[row]! < high)
  }
  if (among) {
    const task = table.column('task')
    tests.push((row) => among.has(task[row]!))
  }
  if (id !== '') {
    const ids = table.lowerIds()
    tests.push((row) => ids[row]!.includes(id))
  }
  return tests
}
