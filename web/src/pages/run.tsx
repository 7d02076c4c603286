import { useComputed } from '@preact/signals'
import { useEffect, useLayoutEffect, useMemo, useState } from 'preact/hooks'
import { Loading } from '../parts/loading.tsx'
import { Problem } from '../parts/problem.tsx'
import { useSource } from '../parts/source-context.ts'
import { taskOrder } from '../parts/task-order.ts'
import { route } from '../route.ts'
import { Causes } from '../run/causes.tsx'
import { Distributions } from '../run/distributions.tsx'
import { Evaluation, Figures } from '../run/evaluation.tsx'
import { filterOf, sortOf } from '../run/filter-query.ts'
import { RunData } from '../run/run-data.ts'
import { RunHeader } from '../run/run-header.tsx'
import { filterRows, type TaskFilter } from '../run/task-filter.ts'
import { sortRows } from '../run/task-sort.ts'
import { Tasks } from '../run/tasks.tsx'
import { TextSearch } from '../run/text-search.ts'
import { Timeline } from '../run/timeline.tsx'
import './run.css'

/** The last shown run is kept, so that returning from a task is immediate. */
let last: { readonly data: RunData; readonly search: TextSearch; scrollY: number } | undefined

export function RunPage({ run }: { readonly run: string }) {
  const source = useSource()
  const [kept] = useState(() => {
    if (last?.data.run !== run || last.data.error.value !== undefined)
      last = { data: new RunData(source, run), search: new TextSearch(source, run), scrollY: 0 }
    return last
  })
  const { data, search } = kept
  useEffect(() => {
    data.open()
    return () => {
      data.close()
      search.stop()
    }
  }, [data])
  useLayoutEffect(() => {
    scrollTo(0, kept.scrollY)
    const keep = () => {
      kept.scrollY = scrollY
    }
    addEventListener('scroll', keep, { passive: true })
    return () => removeEventListener('scroll', keep)
  }, [])
  const { rows, filter } = useRows(data, search)
  const evaluation = data.details.value?.evaluation ?? data.evaluation.value
  const figures = data.figures.value
  const changes = data.tasksChanged.value
  if (data.error.value !== undefined) return <Problem error={data.error.value} />
  if (!data.details.value) return <Loading what="the run" />
  return (
    <div class="run-page">
      <div class="run-main stack">
        <RunHeader data={data} />
        {evaluation ? <Evaluation evaluation={evaluation} /> : figures && <Figures figures={figures} />}
        <Timeline data={data} />
        <div class="run-pair">
          <Causes table={data.tasks} changes={changes} filter={filter} />
          <Distributions table={data.tasks} changes={changes} filter={filter} rows={rows} />
        </div>
      </div>
      <Tasks data={data} filter={filter} rows={rows} search={search} />
    </div>
  )
}

/** The rows that match the filter in the address, in its order. */
function useRows(data: RunData, search: TextSearch): { rows: Uint32Array; filter: TaskFilter } {
  // Computed as a text, so that rows are not filtered again unless the query changes.
  const query = useComputed(() => route.value.query.toString()).value
  const among = search.tasks.value
  const changes = data.tasksChanged.value
  const names = data.names.value
  const filter = useMemo(() => ({ ...filterOf(new URLSearchParams(query)), among }), [query, among])
  const rows = useMemo(
    () => sortRows(data.tasks, filterRows(data.tasks, filter), sortOf(new URLSearchParams(query)), names),
    [data.tasks, changes, names, filter, query],
  )
  useEffect(() => {
    search.start((new URLSearchParams(query).get('text') ?? '').trim())
  }, [query])
  useEffect(() => {
    if (data.tasks.count > 0) taskOrder.value = { run: data.run, table: data.tasks, rows }
  }, [data.tasks, rows])
  return { rows, filter }
}
