import { useMemo, useState } from 'preact/hooks'
import type { TrainingDetails } from '../../../src/view/api.ts'
import { Chart, type ChartPoint, type ChartSeries, SeriesSign, useChartLink } from '../parts/chart.tsx'
import { Empty } from '../parts/empty.tsx'
import { SafeText } from '../parts/safe-text.tsx'
import { route, setQuery } from '../route.ts'
import { duration, figure, shortCount } from '../text/quantities.ts'
import { evaluationSeries } from './evaluation-points.ts'
import { lineOf } from './figure-charts.tsx'
import { type FigureKind, kindsOf, numbersOf, type Update } from './update-figures.ts'

const AXES = {
  update: { name: 'update', format: figure },
  time: { name: 'time', format: (ms: number) => duration(ms) },
  episodes: { name: 'episodes', format: shortCount },
} as const
type Axis = keyof typeof AXES

const WINDOWS = [1, 5, 10, 25, 50]
const MOST_CHARTS = 40

/** A chart for each figure, with a line for each training. */
export function ComparedCharts({ all }: { readonly all: readonly TrainingDetails[] }) {
  const link = useChartLink()
  const { query } = route.value
  const window = WINDOWS.find((one) => String(one) === query.get('smooth')) ?? 1
  const isLog = query.has('log')
  const axis: Axis = query.get('x') === 'time' ? 'time' : query.get('x') === 'episodes' ? 'episodes' : 'update'
  const [hidden, setHidden] = useState<ReadonlySet<string>>(new Set())
  const lines = useMemo(() => all.map((details) => linesOf(details, axis)), [all, axis])
  const kinds = useMemo(() => kindsOf(lines.flatMap(({ numbers }) => numbers)), [lines])
  if (kinds.length === 0) return <Empty>No update so far.</Empty>
  const shown = all.flatMap((details, place) => (hidden.has(details.overview.id) ? [] : [{ details, place }]))
  const common = { xName: AXES[axis].name, formatX: AXES[axis].format, isLog, link }
  const chart = (kind: FigureKind, series: readonly ChartSeries[], more: object = {}) => (
    <div key={`${kind.key} ${String(Object.keys(more))}`} class="panel">
      <Chart
        {...common}
        title={kind.name}
        format={kind.format}
        {...(kind.formatAxis && { formatAxis: kind.formatAxis })}
        {...(kind.about !== undefined && { about: kind.about })}
        {...(kind.range && !isLog && { range: kind.range })}
        series={series}
        {...more}
      />
    </div>
  )
  const seriesOf = (kind: FigureKind) =>
    shown.flatMap(({ details, place }) =>
      lineOf(details.overview.id, lines[place]!.points(kind.key), { window }, place),
    )
  const main = kinds.filter(({ key }) => key === 'successRate' || key === 'reward')
  const rest = kinds.filter((kind) => !main.includes(kind) && isDiffering(seriesOf(kind)))
  return (
    <>
      <section class="panel row" aria-labelledby="charts-title">
        <h2 id="charts-title" class="hidden-text">
          Charts
        </h2>
        {all.map(({ overview: { id } }, place) => (
          <label key={id} class="training-named">
            <input
              type="checkbox"
              checked={!hidden.has(id)}
              onChange={() => setHidden(hidden.has(id) ? without(hidden, id) : new Set(hidden).add(id))}
            />
            <SeriesSign style={place} kind="line" />
            <SafeText text={id} />
          </label>
        ))}
        <label>
          By{' '}
          <select value={axis} onChange={(event) => choose(event.currentTarget.value)}>
            <option value="update">update</option>
            <option value="time">time since the start</option>
            <option value="episodes">episodes</option>
          </select>
        </label>
        <label>
          Smoothing{' '}
          <select
            value={String(window)}
            onChange={({ currentTarget: { value } }) => setQuery({ smooth: value === '1' ? undefined : value })}
          >
            {WINDOWS.map((one) => (
              <option key={one} value={String(one)}>
                {one === 1 ? 'none' : `mean of ${one} updates`}
              </option>
            ))}
          </select>
        </label>
        <button type="button" aria-pressed={isLog} onClick={() => setQuery({ log: isLog ? undefined : '1' })}>
          Log scale
        </button>
        {link.range.value && (
          <button
            type="button"
            onClick={() => {
              link.range.value = null
            }}
          >
            Show all
          </button>
        )}
      </section>
      {shown.length === 0 && <Empty>Select a training above.</Empty>}
      <div class="training-main">
        {main.map((kind) => chart(kind, seriesOf(kind), { height: 260 }))}
        {axis === 'update' &&
          main.flatMap((kind) => {
            const points = shown.flatMap(({ details, place }) =>
              evaluationSeries(details, kind.key === 'reward' ? 'reward' : 'success')
                .filter(({ name }) => name === 'validation')
                .map((one) => ({ ...one, name: details.overview.id, style: place })),
            )
            return points.length === 0
              ? []
              : [chart({ ...kind, name: `${kind.name} in validation` }, points, { height: 260, xName: 'update' })]
          })}
      </div>
      <div class="training-grid">{rest.slice(0, MOST_CHARTS).map((kind) => chart(kind, seriesOf(kind)))}</div>
    </>
  )

  function choose(value: string): void {
    link.range.value = null
    link.cursor.value = null
    setQuery({ x: value === 'update' ? undefined : value })
  }
}

function linesOf({ updates, overview }: TrainingDetails, axis: Axis) {
  const numbers = updates.map(numbersOf)
  let episodes = 0
  const xs = updates.map((update: Update, place) => {
    episodes += numbers[place]!.get('episodes') ?? 0
    return axis === 'update' ? update.number : axis === 'time' ? update.at - overview.startedAt : episodes
  })
  const points = (key: string): ChartPoint[] =>
    numbers.flatMap((one, place) => (one.has(key) ? [{ x: xs[place]!, y: one.get(key)! }] : []))
  return { numbers, points }
}

const isDiffering = (series: readonly ChartSeries[]) => {
  const first = series.find(({ points }) => points.length > 0)?.points[0]?.y
  return series.some(({ points }) => points.some(({ y }) => y !== first))
}

const without = (ids: ReadonlySet<string>, id: string) => new Set([...ids].filter((one) => one !== id))
