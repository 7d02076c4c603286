import type { RunOverview } from '../../../src/store/stored-task.ts'
import type { RunEntry, RunFigures } from '../../../src/view/api.ts'
import { readSort, type Sort, writeSort } from '../parts/sort-query.ts'
import { doneOf } from '../run/pace.ts'

/** Columns whose values need a scan of the run. */
const FIGURES = ['success', 'reward', 'tokens', 'cost'] as const
export type FigureKey = (typeof FIGURES)[number]
const KEYS = ['started', 'id', 'state', 'tasks', 'time', 'engine', ...FIGURES] as const
export type RunSortKey = (typeof KEYS)[number]

const NEWEST_FIRST: Sort<RunSortKey> = { key: 'started', isDescending: true }
/** Runs in progress and failed runs come before finished ones. */
const STATUSES: readonly RunOverview['status'][] = ['running', 'interrupted', 'failed', 'died', 'finished']

export const isRunSortKey = (key: string): key is RunSortKey => (KEYS as readonly string[]).includes(key)
export const isFigureKey = (key: string): key is FigureKey => (FIGURES as readonly string[]).includes(key)

export const runSortOf = (query: URLSearchParams): Sort<RunSortKey> =>
  readSort(query.get('sort'), isRunSortKey, NEWEST_FIRST)
export const runSortQuery = (sort: Sort<RunSortKey>): string | undefined => writeSort(sort, NEWEST_FIRST)

/** The value of a column. Undefined: the run has none. */
export function figureOf({ success, reward, usage }: RunFigures, key: FigureKey): number | undefined {
  if (key === 'success') return success?.value
  if (key === 'reward') return reward?.value
  if (key === 'cost') return usage.costUsd
  const { inputTokens, outputTokens } = usage
  return inputTokens === undefined && outputTokens === undefined ? undefined : (inputTokens ?? 0) + (outputTokens ?? 0)
}

export const figureKeysOf = (figures: RunFigures): FigureKey[] =>
  FIGURES.filter((key) => figureOf(figures, key) !== undefined)

const collator = new Intl.Collator('en', { numeric: true })

/**
 * Sorts runs, which are given newest first. Runs without a value, including damaged ones, come last in both directions;
 * equal ones keep their order.
 */
export function sortRuns(
  runs: readonly RunEntry[],
  sort: Sort<RunSortKey>,
  figuresOf: (run: string) => RunFigures | undefined,
): readonly RunEntry[] {
  const { key, isDescending } = sort
  if (runSortQuery(sort) === undefined) return runs
  const valueIn = (run: RunEntry): number | string | undefined => {
    if ('problem' in run) return undefined
    if (key === 'id') return run.runId
    if (key === 'started') return run.startedAt
    if (key === 'state') return STATUSES.indexOf(run.status)
    if (key === 'tasks') return doneOf(run)
    if (key === 'time') return run.elapsedMs
    if (key === 'engine') return run.engineName
    const figures = figuresOf(run.runId)
    return figures && figureOf(figures, key)
  }
  const sign = isDescending ? -1 : 1
  return runs
    .map((run) => ({ run, value: valueIn(run) }))
    .sort(({ value: a }, { value: b }) => {
      if (a === undefined || b === undefined) return Number(a === undefined) - Number(b === undefined)
      return sign * (typeof a === 'string' ? collator.compare(a, String(b)) : a - Number(b))
    })
    .map(({ run }) => run)
}
