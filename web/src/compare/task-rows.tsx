import { useMemo, useRef } from 'preact/hooks'
import type { ComparedRuns, ComparedSide, ComparedTask } from '../../../src/view/api.ts'
import { Empty } from '../parts/empty.tsx'
import { SafeText } from '../parts/safe-text.tsx'
import { StateSign } from '../parts/state.tsx'
import { useVirtualRows } from '../parts/virtual-rows.ts'
import { route, setQuery, taskHref } from '../route.ts'
import { count, figure } from '../text/quantities.ts'
import { FILTERS, type Flip, gainOf, isShown } from './flips.ts'

const ROW_PX = 34

/** The tasks of both runs, flips first, with filters. */
export function TaskRows({
  compared,
  flips,
}: {
  readonly compared: ComparedRuns
  readonly flips: ReadonlyMap<string, Flip>
}) {
  const { query } = route.value
  const filter = FILTERS.find(([name]) => name === query.get('show'))?.[0] ?? 'all'
  const text = query.get('text') ?? ''
  const counts = useMemo(
    () => new Map(FILTERS.map(([name]) => [name, compared.rows.filter((row) => isShown(row, name, flips)).length])),
    [compared, flips],
  )
  const rows = useMemo(() => {
    const wanted = text.toLowerCase()
    return compared.rows.filter((row) => isShown(row, filter, flips) && row.id.toLowerCase().includes(wanted))
  }, [compared, flips, filter, text])
  return (
    <section class="panel stack" aria-labelledby="tasks-title">
      <h2 id="tasks-title">Tasks</h2>
      <div class="row">
        <fieldset class="compare-filters" aria-label="Which tasks">
          {FILTERS.map(([name, label]) => (
            <button
              key={name}
              type="button"
              aria-pressed={name === filter}
              disabled={counts.get(name) === 0 && name !== filter}
              onClick={() => setQuery({ show: name === 'all' ? undefined : name })}
            >
              {label} <span class="dim">{count(counts.get(name)!)}</span>
            </button>
          ))}
        </fieldset>
        <input
          type="search"
          placeholder="Id contains …"
          aria-label="Id contains"
          value={text}
          onInput={(event) => setQuery({ text: event.currentTarget.value })}
        />
        <span class="dim" role="status">
          {rows.length === compared.rows.length ? '' : `${count(rows.length)} of ${count(compared.rows.length)} tasks`}
        </span>
      </div>
      {rows.length === 0 ? (
        <Empty>
          {compared.rows.length === 0
            ? 'The runs have no tasks.'
            : 'No task matches the filter. Choose “All” or another text above.'}
        </Empty>
      ) : (
        <Table {...{ rows, flips }} a={compared.a} b={compared.b} />
      )}
    </section>
  )
}

function Table({
  rows,
  flips,
  a,
  b,
}: {
  readonly rows: readonly ComparedTask[]
  readonly flips: ReadonlyMap<string, Flip>
  readonly a: string
  readonly b: string
}) {
  const scroller = useRef<HTMLDivElement>(null)
  const { items, height } = useVirtualRows(scroller, rows.length, ROW_PX)
  const above = items[0]?.start ?? 0
  const below = height - (items.at(-1)?.end ?? 0)
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: a region that scrolls must be reachable by keys.
    <div ref={scroller} class="compare-scroll" tabIndex={0}>
      <table class="compare-table" aria-rowcount={rows.length + 1}>
        <thead>
          <tr>
            <th>Task</th>
            <th class="compare-change">Change</th>
            <th class="number compare-result">A</th>
            <th class="number compare-result">B</th>
            <th class="number compare-gain">Reward B − A</th>
          </tr>
        </thead>
        <tbody>
          {above > 0 && <Space height={above} />}
          {items.map(({ index }) => (
            <Row key={rows[index]!.id} {...{ a, b, index }} row={rows[index]!} flip={flips.get(rows[index]!.id)} />
          ))}
          {below > 0 && <Space height={below} />}
        </tbody>
      </table>
    </div>
  )
}

/** Empty space in place of the rows out of sight. */
const Space = ({ height }: { readonly height: number }) => (
  <tr>
    <td colSpan={5} style={{ height: `${height}px`, padding: 0 }} />
  </tr>
)

function Row({
  row,
  flip,
  a,
  b,
  index,
}: {
  readonly row: ComparedTask
  readonly flip: Flip | undefined
  readonly a: string
  readonly b: string
  readonly index: number
}) {
  const gain = gainOf(row)
  return (
    <tr aria-rowindex={index + 2} style={{ height: `${ROW_PX}px` }}>
      <th scope="row" class="cut mono" title={row.id.slice(0, 1000)}>
        <a href={taskHref(row.b === null ? a : b, row.id)}>
          <SafeText text={row.id.slice(0, 300)} />
        </a>
      </th>
      <td>
        <Change row={row} flip={flip} />
      </td>
      <td class="number">
        <Side side={row.a} href={taskHref(a, row.id)} name="A" />
      </td>
      <td class="number">
        <Side side={row.b} href={taskHref(b, row.id)} name="B" />
      </td>
      <td class="number">
        {gain === undefined ? '–' : gain === 0 ? '0' : `${gain > 0 ? '+' : '−'}${figure(Math.abs(gain))}`}
      </td>
    </tr>
  )
}

function Change({ row, flip }: { readonly row: ComparedTask; readonly flip: Flip | undefined }) {
  if (flip === 'toSolved')
    return (
      <span class="compare-to-solved">
        <span aria-hidden="true">▲ </span>to solved
      </span>
    )
  if (flip === 'toUnsolved')
    return (
      <span class="compare-to-unsolved">
        <span aria-hidden="true">▼ </span>to unsolved
      </span>
    )
  return <span class="dim">{row.a === null ? 'only in B' : row.b === null ? 'only in A' : 'same'}</span>
}

/** The result of a run on a task, as a link to it. */
function Side({
  side,
  href,
  name,
}: {
  readonly side: ComparedSide | null
  readonly href: string
  readonly name: string
}) {
  if (side === null) return <span class="dim">–</span>
  const { rollouts, solved, reward, state } = side
  const result =
    solved === null ? state : rollouts === 1 ? (solved > 0 ? 'solved' : 'unsolved') : `${solved} of ${rollouts} solved`
  return (
    <a class="compare-side" href={href}>
      <span class="hidden-text">{name}: </span>
      <span class={`state state-${solved === null ? state : solved > 0 ? 'success' : 'failed'}`}>
        <StateSign state={solved === null ? state : solved > 0 ? 'success' : 'failed'} />
        {result}
      </span>
      {reward !== null && <span class="hidden-text">, reward </span>}
      {reward !== null && <span class="compare-reward">{figure(reward)}</span>}
    </a>
  )
}
