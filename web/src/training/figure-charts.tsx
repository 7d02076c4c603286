import { useMemo } from 'preact/hooks'
import type { RunFigures, TrainingDetails } from '../../../src/view/api.ts'
import { Chart, type ChartLink, type ChartPoint, type ChartSeries } from '../parts/chart.tsx'
import { SafeText } from '../parts/safe-text.tsx'
import { evaluationSeries } from './evaluation-points.ts'
import { movingAverage } from './smooth.ts'
import { widestInterval } from './success-interval.ts'
import type { FigureKind, Update } from './update-figures.ts'

export interface ChartSettings {
  /** How many updates are averaged; 1: none. */
  readonly window: number
  readonly isLog: boolean
}

/** The figures with large charts, intervals and evaluations. */
const MAIN = ['successRate', 'reward']
/** The most charts: more would be slow. The table has all figures. */
const MOST_CHARTS = 60

/** A chart for each figure that changes. Constant figures are listed in one line. */
export function FigureCharts({
  details,
  numbers,
  kinds,
  figures,
  settings,
  link,
  onPick,
}: {
  readonly details: TrainingDetails
  /** For each update. */
  readonly numbers: readonly ReadonlyMap<string, number>[]
  readonly kinds: readonly FigureKind[]
  /** By run. */
  readonly figures: ReadonlyMap<string, RunFigures>
  readonly settings: ChartSettings
  readonly link: ChartLink
  readonly onPick: (update: number) => void
}) {
  const { updates } = details
  const series = useMemo(
    () => new Map(kinds.map(({ key }) => [key, pointsOf(updates, numbers, key)])),
    [updates, numbers, kinds],
  )
  const intervals = useMemo(() => intervalsOf(details, figures), [details, figures])
  const main = kinds.filter(({ key }) => MAIN.includes(key))
  const rest = kinds.filter(({ key }) => !MAIN.includes(key) && key !== 'staleness.max')
  const constant = rest.filter(({ key }) => isConstant(series.get(key)!))
  const changing = rest.filter((kind) => !constant.includes(kind))
  const common = { xName: 'update', isLog: settings.isLog, link, onPick }
  return (
    <>
      <div class="training-main">
        {main.map((kind) => {
          const evaluated = evaluationSeries(details, kind.key === 'reward' ? 'reward' : 'success')
          const points = series.get(kind.key)!.map((point) => ({ ...point, ...intervals(kind.key, point) }))
          return (
            <div key={kind.key} class="panel">
              <Chart
                {...common}
                {...chartOf(kind, settings)}
                height={260}
                series={[...lineOf('episodes learned from', points, settings, 0), ...evaluated]}
              />
            </div>
          )
        })}
      </div>
      {main.length > 0 && (
        <p class="dim training-note">
          Lines: episodes of each update; bands: 95 % intervals over its tasks. Points: versions that were evaluated, at
          the first update in which they acted, with 95 % intervals. Drag to zoom, double-click to see all, click for an
          update.
        </p>
      )}
      {changing.length > 0 && (
        <div class="training-grid">
          {changing.slice(0, MOST_CHARTS).map((kind) => {
            const largest = kind.key === 'staleness.mean' ? series.get('staleness.max') : undefined
            return (
              <div key={kind.key} class="panel">
                <Chart
                  {...common}
                  {...chartOf(kind, settings)}
                  series={[
                    ...lineOf(largest ? 'mean' : kind.name, series.get(kind.key)!, settings, 0),
                    ...(largest ? lineOf('largest', largest, settings, 1) : []),
                  ]}
                />
              </div>
            )
          })}
        </div>
      )}
      {changing.length > MOST_CHARTS && (
        <p class="dim">{changing.length - MOST_CHARTS} more figures are in the table of numbers.</p>
      )}
      {constant.length > 0 && (
        <p class="dim training-note">
          The same in all updates:{' '}
          {constant.map(({ key, name, format }, place) => (
            <span key={key}>
              {place > 0 && ', '}
              <SafeText text={name} /> {format(series.get(key)![0]!.y)}
            </span>
          ))}
        </p>
      )}
    </>
  )
}

const chartOf = ({ name, about, format, formatAxis, range }: FigureKind, { isLog }: ChartSettings) => ({
  ...{ title: name, format },
  ...(about !== undefined && { about }),
  ...(formatAxis && { formatAxis }),
  ...(range && !isLog && { range }),
})

const pointsOf = (updates: readonly Update[], numbers: readonly ReadonlyMap<string, number>[], key: string) =>
  updates.flatMap(({ number }, place): ChartPoint[] => {
    const y = numbers[place]!.get(key)
    return y === undefined ? [] : [{ x: number, y }]
  })

/** With at most two values, a figure does not count as constant. */
const isConstant = (points: readonly ChartPoint[]) => points.length > 2 && points.every(({ y }) => y === points[0]!.y)

/** A line; if it is smoothed, the original values are drawn pale behind it. */
export function lineOf(
  name: string,
  points: readonly ChartPoint[],
  { window }: Pick<ChartSettings, 'window'>,
  style: number,
): ChartSeries[] {
  if (window <= 1 || points.length < 3) return [{ name, points, style }]
  const raw = points.map(({ x, y }) => ({ x, y }))
  return [
    { name: `${name}, each`, points: raw, style, isFaint: true },
    { name, points: movingAverage(raw, window), style },
  ]
}

/** The intervals of an update's run. If they are not loaded, the widest possible interval for the success rate. */
function intervalsOf({ updates, plans }: TrainingDetails, figures: ReadonlyMap<string, RunFigures>) {
  const tasks = new Map(plans.map((plan) => [plan.number, plan.tasks]))
  const runs = new Map(updates.map(({ number, run }) => [number, run]))
  return (key: string, { x, y }: ChartPoint): { low?: number; high?: number } => {
    const found = figures.get(runs.get(x) ?? '')?.[key === 'reward' ? 'reward' : 'success']
    if (found && typeof found.low === 'number' && typeof found.high === 'number')
      return { low: Math.min(found.low, y), high: Math.max(found.high, y) }
    const count = tasks.get(x) ?? 0
    return key === 'successRate' && count > 0 && y >= 0 && y <= 1 ? widestInterval(y, count) : {}
  }
}
