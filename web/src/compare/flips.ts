import type { ComparedRuns, ComparedTask } from '../../../src/view/api.ts'

export type Flip = 'toSolved' | 'toUnsolved'

/** The tasks that most rollouts of one run solved and most of the other did not. */
export function flipsOf({ flips }: ComparedRuns): ReadonlyMap<string, Flip> {
  return new Map<string, Flip>([
    ...flips.toSolved.map((id) => [id, 'toSolved'] as const),
    ...flips.toUnsolved.map((id) => [id, 'toUnsolved'] as const),
  ])
}

export type Filter = 'all' | 'flips' | 'toSolved' | 'toUnsolved' | 'onlyA' | 'onlyB' | 'different'

export const FILTERS: readonly (readonly [filter: Filter, name: string])[] = [
  ['all', 'All'],
  ['flips', 'Flips'],
  ['toSolved', '▲ To solved'],
  ['toUnsolved', '▼ To unsolved'],
  ['different', 'Reward differs'],
  ['onlyA', 'Only in A'],
  ['onlyB', 'Only in B'],
]

/** Whether a filter shows a task. */
export function isShown({ id, a, b }: ComparedTask, filter: Filter, flips: ReadonlyMap<string, Flip>): boolean {
  switch (filter) {
    case 'all':
      return true
    case 'flips':
      return flips.has(id)
    case 'toSolved':
    case 'toUnsolved':
      return flips.get(id) === filter
    case 'onlyA':
      return b === null
    case 'onlyB':
      return a === null
    case 'different':
      return a !== null && b !== null && a.reward !== b.reward
  }
}

/** B minus A; undefined: one of them has no reward. */
export const gainOf = ({ a, b }: ComparedTask): number | undefined =>
  a?.reward == null || b?.reward == null ? undefined : b.reward - a.reward
