import { useLayoutEffect, useMemo, useRef } from 'preact/hooks'
import { DataTable } from '../parts/data-table.tsx'
import { Empty } from '../parts/empty.tsx'
import { route, setQuery, taskHref } from '../route.ts'
import { count, counted } from '../text/quantities.ts'
import { sortOf, sortQuery } from './filter-query.ts'
import type { RunData } from './run-data.ts'
import { SearchHits } from './search-hits.tsx'
import { taskColumns } from './task-columns.tsx'
import type { TaskFilter } from './task-filter.ts'
import { TaskFilters } from './task-filters.tsx'
import { isSortKey, type SortKey } from './task-sort.ts'
import type { TextSearch } from './text-search.ts'

const ROW_HEIGHT = 30

interface Props {
  readonly data: RunData
  readonly filter: TaskFilter
  /** The rows to show, in order. */
  readonly rows: Uint32Array
  readonly search: TextSearch
}

/** All tasks of the run, in a table with filters and a search in their texts. */
export function Tasks({ data, filter, rows, search }: Props) {
  const { tasks: table, run } = data
  const changes = data.tasksChanged.value
  const names = data.names.value
  const section = useRef<HTMLElement>(null)
  const sort = sortOf(route.value.query)
  const columns = useMemo(
    () => taskColumns(run, table, names, (place) => rows[place]!),
    [run, table, changes, names, rows],
  )
  useLayoutEffect(() => onSlash(section.current), [])
  const all = filter.withSubTasks ? table.count : table.count - table.subTasks
  return (
    <section class="panel stack tasks" aria-labelledby="tasks-title" ref={section}>
      <div class="row spread">
        <h2 id="tasks-title">Tasks</h2>
        <span class="dim" role="status">
          {rows.length === all ? counted(all, 'task') : `${count(rows.length)} of ${counted(all, 'task')}`}
          {!data.tasksLoaded.value && ', loading …'}
        </span>
      </div>
      <TaskFilters {...{ table, changes, names, filter }} />
      <input
        type="search"
        class="tasks-search"
        placeholder="Search in inputs, answers, errors, steps and logs"
        aria-label="Search in inputs, answers, errors, steps and logs"
        value={route.value.query.get('text') ?? ''}
        onInput={(event) => setQuery({ text: event.currentTarget.value })}
      />
      <SearchHits run={run} search={search} />
      {rows.length === 0 && data.tasksLoaded.value ? (
        <Empty>{table.count === 0 ? 'No task has been read so far.' : 'No task matches the filter.'}</Empty>
      ) : (
        <DataTable
          label="Tasks"
          columns={columns}
          count={rows.length}
          rowHeight={ROW_HEIGHT}
          remember={`tasks ${run}`}
          keyOf={(place) => rows[place]!}
          hrefOf={(place) => taskHref(run, table.ids[rows[place]!]!)}
          sorting={{
            ...sort,
            keys: columns.map(({ key }) => key).filter(isSortKey),
            by: (key, isDescending) => setQuery({ sort: sortQuery({ key: key as SortKey, isDescending }) }),
          }}
        />
      )}
      <p class="dim tasks-keys">
        <kbd>/</kbd> filter by id · <kbd>↑</kbd> <kbd>↓</kbd> rows · <kbd>Enter</kbd> open
        {sort.key !== 'task' && (
          <>
            {' · '}
            <button type="button" class="tasks-unsort" onClick={() => setQuery({ sort: undefined })}>
              order of the run
            </button>
          </>
        )}
      </p>
    </section>
  )
}

/** The key `/` focuses the filter. */
function onSlash(section: HTMLElement | null): () => void {
  const listener = (event: KeyboardEvent) => {
    const { target } = event
    if (event.key !== '/' || event.ctrlKey || event.metaKey || event.altKey) return
    if (target instanceof HTMLElement && target.matches('input, select, textarea, [contenteditable]')) return
    event.preventDefault()
    section?.querySelector<HTMLElement>('[data-shortcut="/"]')?.focus()
  }
  addEventListener('keydown', listener)
  return () => removeEventListener('keydown', listener)
}
