import type { Sort } from '../parts/sort-query.ts'
import { naturalRanks } from './natural-ranks.ts'
import { sortByKey } from './radix-sort.ts'
import type { NumberColumn, TaskTable } from './task-table.ts'

const NUMBERS = [
  'task',
  'state',
  'attempts',
  'endedAt',
  'runMs',
  'queuedMs',
  'tokens',
  'costUsd',
  'reward',
  'solved',
  'version',
  'rollout',
] as const satisfies readonly NumberColumn[]
const TEXTS = ['id', 'group', 'agent', 'worker'] as const

export type SortKey = (typeof NUMBERS)[number] | (typeof TEXTS)[number]

/** Tasks without a value come last in both directions. Equal ones keep the order of the run. */
export type TaskSort = Sort<SortKey>

/** The names of agents and workers by their keys. */
export interface Names {
  readonly agents: ReadonlyMap<number, string>
  readonly workers: ReadonlyMap<number, string>
}

export const isSortKey = (key: string): key is SortKey =>
  (NUMBERS as readonly string[]).includes(key) || (TEXTS as readonly string[]).includes(key)

export function sortRows(table: TaskTable, rows: Uint32Array, sort: TaskSort, names: Names): Uint32Array {
  if (sort.key === 'task' && !sort.isDescending) return rows
  const values = valuesOf(table, sort.key, names)
  return sortByKey(rows, sort.isDescending ? (row) => -values[row]! : (row) => values[row]!)
}

function valuesOf(table: TaskTable, key: SortKey, names: Names): Float64Array {
  if (key === 'id') return ranksOf(table, 'id', table.ids)
  if (key === 'group') return ranksOf(table, 'group', table.groups)
  if (key === 'agent') return byName(table, key, names.agents)
  if (key === 'worker') return byName(table, key, names.workers)
  return table.column(key)
}

const collator = new Intl.Collator('en', { numeric: true })

function byName(table: TaskTable, key: 'agent' | 'worker', names: ReadonlyMap<number, string>): Float64Array {
  const sorted = [...names].sort(([, a], [, b]) => collator.compare(a, b))
  const rank = new Map(sorted.map(([key], place) => [key, place]))
  return table.column(key).map((value) => rank.get(value) ?? Number.NaN)
}

interface Ranks {
  readonly count: number
  readonly ranks: Float64Array
}
const known = new WeakMap<TaskTable, Map<string, Ranks>>()

/** The position of each text in alphabetical order, with numbers by their values. Cached until there are new rows. */
function ranksOf(table: TaskTable, name: string, texts: readonly (string | null)[]): Float64Array {
  let ofTable = known.get(table)
  if (!ofTable) known.set(table, (ofTable = new Map()))
  const earlier = ofTable.get(name)
  if (earlier?.count === table.count) return earlier.ranks
  const ranks = naturalRanks(texts)
  ofTable.set(name, { count: table.count, ranks })
  return ranks
}
