import { useMemo } from 'preact/hooks'
import type { SearchHit } from '../../../src/view/api.ts'
import { type Column, DataTable } from '../parts/data-table.tsx'
import { Problem } from '../parts/problem.tsx'
import { SafeText, visible } from '../parts/safe-text.tsx'
import { taskHref } from '../route.ts'
import { count, counted, percent } from '../text/quantities.ts'
import type { TextSearch } from './text-search.ts'

const ROW_HEIGHT = 32

/** The hits of a search so far. */
export function SearchHits({ run, search }: { readonly run: string; readonly search: TextSearch }) {
  const hits = search.hits.value
  const columns = useMemo(() => hitColumns(run, hits), [run, hits])
  if (search.text.value === '') return null
  const searched = search.searched.value
  const isDone = search.isDone.value
  return (
    <div class="stack hits">
      {search.error.value !== undefined && <Problem error={search.error.value} />}
      <p role="status" class="dim">
        {isDone
          ? hits.length === 0
            ? 'Not found in this run.'
            : `${search.isLimited.value ? 'The first ' : ''}${counted(hits.length, 'hit')} in ${counted(search.tasks.value?.size ?? 0, 'task')}`
          : `Searching … ${counted(hits.length, 'hit')}`}
        {!isDone && searched && `, ${percent(searched.of === 0 ? 1 : searched.searched / searched.of)} searched`}
      </p>
      {!isDone && (
        <progress aria-label="Searched" max={searched?.of ?? 1} value={searched?.searched ?? 0}>
          {searched && count(searched.searched)}
        </progress>
      )}
      {hits.length > 0 && (
        <DataTable
          label="Hits"
          columns={columns}
          count={hits.length}
          rowHeight={ROW_HEIGHT}
          keyOf={(row) => row}
          hrefOf={(row) => hrefOfHit(run, hits[row]!)}
        />
      )}
    </div>
  )
}

function hitColumns(run: string, hits: readonly SearchHit[]): Column[] {
  return [
    {
      ...{ key: 'id', title: 'Task', width: 100, rank: 0, grows: 1 },
      cell: (row) => (
        <a class="mono" href={hrefOfHit(run, hits[row]!)} data-row-link title={hits[row]!.id.slice(0, 300)}>
          <SafeText text={hits[row]!.id.slice(0, 300)} />
        </a>
      ),
    },
    {
      ...{ key: 'place', title: 'In', width: 60, rank: 1 },
      cell: (row) => (hits[row]!.place === 'step' ? `step ${hits[row]!.step}` : hits[row]!.place),
    },
    {
      ...{ key: 'excerpt', title: 'Text', width: 120, rank: 0, grows: 4 },
      cell: (row) => <Excerpt hit={hits[row]!} />,
    },
  ]
}

/** The text around the hit. The part before it is shortened, so that the hit is visible. */
function Excerpt({ hit }: { readonly hit: SearchHit }) {
  const { excerpt, from, length } = hit
  const before = excerpt.slice(Math.max(0, from - 24), from)
  return (
    <span class="mono">
      <bdi>
        {from > 24 && '…'}
        {visible(before)}
        <mark>{visible(excerpt.slice(from, from + length))}</mark>
        {visible(excerpt.slice(from + length))}
      </bdi>
    </span>
  )
}

const hrefOfHit = (run: string, { id, place, attempt, step }: SearchHit) =>
  taskHref(run, id, {
    ...(place === 'step' && attempt !== undefined && { attempt: String(attempt) }),
    ...(place === 'step' && step !== undefined && { step: String(step) }),
  })
