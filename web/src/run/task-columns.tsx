import { STATES } from '../../../src/view/api.ts'
import type { Column } from '../parts/data-table.tsx'
import { SafeText } from '../parts/safe-text.tsx'
import { State } from '../parts/state.tsx'
import { taskHref } from '../route.ts'
import { count, dollars, duration, figure, shortCount } from '../text/quantities.ts'
import type { Names } from './task-sort.ts'
import type { NumberColumn, TaskTable } from './task-table.ts'

/** The longest text of a cell, because ids may have megabytes. */
const LONGEST = 300

/** The columns of the task table, without empty ones. `rowAt`: the row at a position of the sorted list. */
export function taskColumns(run: string, table: TaskTable, names: Names, rowAt: (place: number) => number): Column[] {
  const number = (
    key: NumberColumn,
    title: string,
    rank: number,
    width: number,
    show: (value: number) => string,
    hint?: string,
  ): Column => ({
    ...{ key, title, rank, width, isNumber: true },
    ...(hint !== undefined && { hint }),
    cell: (place) => {
      const value = table.value(key, rowAt(place))
      return value === undefined ? '' : show(value)
    },
  })
  const columns: (Column & { readonly needs?: NumberColumn | 'group' })[] = [
    {
      ...{ key: 'state', title: 'State', rank: 0, width: 92, narrow: 16 },
      cell: (place) => <State state={STATES[table.column('state')[rowAt(place)]!] ?? 'pending'} />,
    },
    {
      ...{ key: 'id', title: 'Task', rank: 0, width: 120, wish: 190, grows: 1 },
      cell: (place) => {
        const id = table.ids[rowAt(place)]!
        return (
          <a class="mono tasks-id" href={taskHref(run, id)} data-row-link title={cut(id)}>
            {table.column('parent')[rowAt(place)] !== 0 && <span class="dim">sub-task </span>}
            <SafeText text={cut(id)} />
          </a>
        )
      },
    },
    {
      ...{ key: 'agent', title: 'Agent', rank: 7, width: 120, needs: 'agent' },
      cell: (place) => <SafeText text={cut(names.agents.get(table.column('agent')[rowAt(place)]!) ?? '')} />,
    },
    { ...number('attempts', 'Attempts', 6, 70, count), needs: 'attempts' },
    { ...number('runMs', 'Run time', 1, 88, duration), needs: 'runMs' },
    { ...number('queuedMs', 'Queued', 8, 80, duration, 'How long the task waited for a worker'), needs: 'queuedMs' },
    { ...number('tokens', 'Tokens', 4, 76, shortCount, 'Input and output tokens'), needs: 'tokens' },
    { ...number('costUsd', 'Cost', 5, 76, dollars), needs: 'costUsd' },
    { ...number('reward', 'Reward', 2, 70, figure), needs: 'reward' },
    {
      ...{ key: 'solved', title: 'Solved', rank: 3, width: 64, needs: 'solved' },
      cell: (place) => solvedText(table.value('solved', rowAt(place))),
    },
    { ...number('version', 'Version', 9, 66, count, 'Of the policy that acted'), needs: 'version' },
    {
      ...{ key: 'worker', title: 'Worker', rank: 10, width: 96, needs: 'worker' },
      cell: (place) => <SafeText text={cut(names.workers.get(table.value('worker', rowAt(place)) ?? -1) ?? '')} />,
    },
    {
      ...{ key: 'group', title: 'Group', rank: 11, width: 110, needs: 'group' },
      cell: (place) => <SafeText text={cut(table.groups[rowAt(place)] ?? '')} />,
    },
    { ...number('rollout', 'Rollout', 12, 64, count), needs: 'rollout' },
  ]
  return columns.filter(({ needs }) => needs === undefined || table.has(needs))
}

const solvedText = (value: number | undefined) =>
  value === undefined ? (
    ''
  ) : value === 1 ? (
    <span class="state-success">✓ yes</span>
  ) : (
    <span class="state-failed">✗ no</span>
  )

const cut = (text: string) => (text.length > LONGEST ? `${text.slice(0, LONGEST)}…` : text)
