import { useMemo, useRef, useState } from 'preact/hooks'
import { setQuery } from '../route.ts'
import { counted, dollars, duration, figure, shortCount } from '../text/quantities.ts'
import { rangeQuery } from './filter-query.ts'
import { countIn, type Histogram, histogramOf, rangeOf } from './histogram.ts'
import { filterRows, type RangeColumn, type TaskFilter } from './task-filter.ts'
import type { TaskTable } from './task-table.ts'

/** How the values of a column are written. */
export const SHOWN: Readonly<Record<RangeColumn, { readonly name: string; show(value: number): string }>> = {
  runMs: { name: 'Run time', show: duration },
  queuedMs: { name: 'Time in the queue', show: duration },
  tokens: { name: 'Tokens', show: shortCount },
  costUsd: { name: 'Cost', show: dollars },
  reward: { name: 'Reward', show: figure },
}
const CHARTS = ['runMs', 'tokens', 'reward'] as const

interface Props {
  readonly table: TaskTable
  readonly changes: number
  readonly filter: TaskFilter
  /** The rows that match the filter. */
  readonly rows: Uint32Array
}

/** Histograms of run times, tokens and rewards: all tasks in the background, filtered tasks in front. */
export function Distributions({ table, changes, filter, rows }: Props) {
  const all = useMemo(
    () => filterRows(table, { states: [], id: '', ranges: {}, withSubTasks: filter.withSubTasks }),
    [table, changes, filter.withSubTasks],
  )
  const charts = CHARTS.filter((name) => table.has(name))
  return (
    <section class="panel stack" aria-labelledby="distributions-title">
      <h2 id="distributions-title">Distributions</h2>
      {charts.length === 0 && <p class="dim">No task has ended so far.</p>}
      <div class="distributions">
        {charts.map((name) => (
          <Chart key={name} name={name} all={all} {...{ table, changes, filter, rows }} />
        ))}
      </div>
    </section>
  )
}

function Chart(props: Props & { readonly name: RangeColumn; readonly all: Uint32Array }) {
  const { name, table, changes, filter, rows, all } = props
  const histogram = useMemo(() => histogramOf(table.column(name), all), [table, changes, all, name])
  const chosen = useMemo(
    () => histogram && countIn(histogram.edges, table.column(name), rows),
    [histogram, rows, table, name],
  )
  if (!histogram || !chosen) return null
  const { show } = SHOWN[name]
  const { median, p90, max, mean } = histogram.quantiles
  return (
    <figure class="distribution">
      <figcaption>
        <h3>
          {SHOWN[name].name}
          {histogram.isLog && <span class="dim"> (log scale)</span>}
        </h3>
        <span class="dim distribution-facts">
          {name === 'reward'
            ? `mean ${show(mean)} · median ${show(median)}`
            : `median ${show(median)} · 90 % below ${show(p90)} · max ${show(max)}`}
        </span>
      </figcaption>
      <Bars name={name} histogram={histogram} chosen={chosen} range={filter.ranges[name]} show={show} />
    </figure>
  )
}

function Bars(props: {
  readonly name: RangeColumn
  readonly histogram: Histogram
  readonly chosen: Uint32Array
  readonly range: { readonly low: number; readonly high: number } | undefined
  show(value: number): string
}) {
  const { name, histogram, chosen, range, show } = props
  const { edges, counts } = histogram
  const [shown, setShown] = useState<number | undefined>(undefined)
  const [reached, setReached] = useState(0)
  const anchor = useRef(0)
  const most = Math.max(...counts, 1)
  const isIn = (bin: number) => {
    const of = rangeOf(histogram, bin)
    return range !== undefined && of.low >= range.low && of.high <= range.high
  }
  // The last edge may be above the largest value, so the largest value is shown.
  const { max } = histogram.quantiles
  const edgeText = (edge: number) => show(edges[edge - 1]! <= max ? Math.min(edges[edge]!, max) : edges[edge]!)
  const textOf = (bin: number) =>
    `${edgeText(bin)}${edgeText(bin) === edgeText(bin + 1) ? '' : ` to ${edgeText(bin + 1)}`}: ${
      chosen[bin] === counts[bin] ? counted(counts[bin]!, 'task') : `${chosen[bin]} of ${counted(counts[bin]!, 'task')}`
    }`
  const choose = (bin: number, isMore: boolean) => {
    if (!isMore) anchor.current = bin
    const wanted = rangeOf(histogram, Math.min(anchor.current, bin), Math.max(anchor.current, bin))
    const isSame = range?.low === wanted.low && range.high === wanted.high
    setQuery({ [name]: isSame ? undefined : rangeQuery(wanted) })
  }
  const tabbable = Math.min(reached, counts.length - 1)
  return (
    <>
      <fieldset
        class="distribution-bars"
        aria-label={`${SHOWN[name].name}: ranges. Arrow keys move, Enter shows only the tasks of a range, with Shift up to it.`}
        onPointerLeave={() => setShown(undefined)}
      >
        {Array.from(counts, (count, bin) => (
          <button
            key={bin}
            type="button"
            data-bin={bin}
            tabIndex={bin === tabbable ? 0 : -1}
            aria-pressed={isIn(bin)}
            aria-label={textOf(bin)}
            onPointerEnter={() => setShown(bin)}
            onFocus={() => {
              setShown(bin)
              setReached(bin)
            }}
            onBlur={() => setShown(undefined)}
            onClick={(event) => choose(bin, event.shiftKey)}
            onKeyDown={(event) => {
              const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key]
              const row = event.currentTarget.parentElement
              if (step) row?.querySelector<HTMLElement>(`[data-bin="${bin + step}"]`)?.focus()
            }}
          >
            <span class="distribution-all" style={{ height: heightOf(count, most) }} />
            <span class="distribution-chosen" style={{ height: heightOf(chosen[bin]!, most) }} />
          </button>
        ))}
      </fieldset>
      <div class="distribution-axis dim" aria-hidden="true">
        {shown === undefined || counts[shown] === undefined ? (
          <>
            <span>{edgeText(0)}</span>
            <span>{edgeText(Math.floor(counts.length / 2))}</span>
            <span>{edgeText(counts.length)}</span>
          </>
        ) : (
          <span class="distribution-shown">{textOf(shown)}</span>
        )}
      </div>
    </>
  )
}

/** At least two pixels, unless the bin is empty. */
const heightOf = (count: number, most: number) => (count === 0 ? '0' : `max(2px, ${(100 * count) / most}%)`)
