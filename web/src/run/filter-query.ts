import { STATES } from '../../../src/view/api.ts'
import { readSort, writeSort } from '../parts/sort-query.ts'
import { RANGE_COLUMNS, type Range, type RangeColumn, type TaskFilter } from './task-filter.ts'
import { isSortKey, type TaskSort } from './task-sort.ts'

/** The filter and the order in the address of a page: `state=failed,crashed&agent=2&runMs=10..20&sort=-runMs`. */
export function filterOf(query: URLSearchParams): TaskFilter {
  const [agent, cause, version, worker] = ['agent', 'cause', 'version', 'worker'].map((key) => wholeOf(query.get(key)))
  const solved = query.get('solved')
  const ranges: Partial<Record<RangeColumn, Range>> = {}
  for (const name of RANGE_COLUMNS) {
    const range = rangeOf(query.get(name))
    if (range) ranges[name] = range
  }
  return {
    states: (query.get('state') ?? '')
      .split(',')
      .map((state) => STATES.indexOf(state as never))
      .filter((place) => place >= 0),
    ...(agent !== undefined && { agent }),
    ...(cause !== undefined && { cause }),
    ...(version !== undefined && { version }),
    ...(worker !== undefined && { worker }),
    ...((solved === 'yes' || solved === 'no' || solved === 'none') && { solved }),
    id: (query.get('id') ?? '').toLowerCase(),
    ranges,
    withSubTasks: query.get('sub') === '1',
  }
}

export const stateQuery = (states: readonly number[]): string => states.map((place) => STATES[place]!).join(',')

const ORDER_OF_THE_RUN: TaskSort = { key: 'task', isDescending: false }

export const sortOf = (query: URLSearchParams): TaskSort => readSort(query.get('sort'), isSortKey, ORDER_OF_THE_RUN)
export const sortQuery = (sort: TaskSort): string | undefined => writeSort(sort, ORDER_OF_THE_RUN)

export const rangeQuery = ({ low, high }: Range): string =>
  `${low === -Infinity ? '' : low}..${high === Infinity ? '' : high}`

function rangeOf(text: string | null): Range | undefined {
  const [low, high, more] = text?.split('..') ?? []
  if (low === undefined || high === undefined || more !== undefined) return undefined
  const range = { low: low === '' ? -Infinity : Number(low), high: high === '' ? Infinity : Number(high) }
  return Number.isNaN(range.low) || Number.isNaN(range.high) ? undefined : range
}

function wholeOf(text: string | null | undefined): number | undefined {
  const value = text ? Number(text) : Number.NaN
  return Number.isInteger(value) ? value : undefined
}
