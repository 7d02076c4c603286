import { effect } from '@preact/signals'
import { useEffect, useLayoutEffect, useRef } from 'preact/hooks'
import { figure } from '../text/quantities.ts'
import { type ChartSeries, columnsOf, inWords, pointAt, rangeOf } from './chart-data.ts'
import { type ChartLink, useChartLink } from './chart-link.ts'
import { lookOf, svgShape } from './chart-marks.ts'
import { ChartPlot, type PlotOptions } from './chart-plot.ts'
import { SafeText } from './safe-text.tsx'
import { themeName } from './theme-button.tsx'
import 'uplot/dist/uPlot.min.css'
import './chart.css'

export type { ChartPoint, ChartSeries } from './chart-data.ts'
export { type ChartLink, useChartLink } from './chart-link.ts'

/**
 * A chart of lines, points or bars over a common x axis.
 *
 * @example
 * <Chart title="Duration" xName="seconds" series={[{ name: 'tasks', kind: 'bars', points: [{ x: 1, y: 20 }, { x: 2, y: 7 }] }]} />
 */
export interface ChartProps {
  readonly title: string
  /** An explanation, for a tooltip. */
  readonly about?: string
  readonly xName: string
  readonly series: readonly ChartSeries[]
  /** Default: up to four digits. */
  readonly format?: (value: number) => string
  readonly formatX?: (value: number) => string
  /** Labels of the y axis. Default: as `format`. */
  readonly formatAxis?: (value: number) => string
  readonly isLog?: boolean
  /** The y axis, if it does not depend on the values. */
  readonly range?: readonly [low: number, high: number]
  /** Pixels. Default 180. */
  readonly height?: number
  /** Charts with the same link have the same cursor and the same part of the x axis. */
  readonly link?: ChartLink
  /** Called with x when a point is clicked. */
  readonly onPick?: (x: number) => void
}

const HEIGHT = 180

export function Chart(props: ChartProps) {
  const { title, about, xName, series, format = figure, isLog = false, onPick } = props
  const own = useChartLink()
  const link = props.link ?? own
  const isEmpty = series.every(({ points }) => points.length === 0)
  const data = columnsOf(series, isLog)
  return (
    <figure class="chart">
      <figcaption>
        <h3 title={about}>
          <SafeText text={title} />
        </h3>
        <Legend {...{ title, series, format, link, xName }} formatX={props.formatX ?? figure} />
      </figcaption>
      {isEmpty ? (
        <div class="chart-none" style={{ height: `${props.height ?? HEIGHT}px` }}>
          No values so far
        </div>
      ) : (
        <>
          <Plot
            label={`${title} by ${xName}. ${inWords(series, xName, format)}`}
            height={props.height ?? HEIGHT}
            options={{
              series,
              data,
              isLog,
              range: props.range ?? rangeOf(data, isLog),
              format: props.formatAxis ?? format,
              formatX: props.formatX ?? figure,
              link,
              onPick,
            }}
          />
          {data.left > 0 && (
            <p class="dim chart-left">
              {data.left} {data.left === 1 ? 'value' : 'values'} from 0 down not shown: the scale is logarithmic
            </p>
          )}
        </>
      )}
    </figure>
  )
}

/**
 * A canvas that follows the size of its panel, the theme and the cursor. It is created once, and again if the kinds of
 * series change.
 */
function Plot({
  label,
  height,
  options,
}: {
  readonly label: string
  readonly height: number
  readonly options: PlotOptions
}) {
  const place = useRef<HTMLDivElement>(null)
  const plot = useRef<ChartPlot>(null)
  const shape = JSON.stringify([
    options.isLog,
    height,
    options.series.map(({ kind, style, isFaint }) => [kind, style, isFaint]),
  ])

  useLayoutEffect(() => {
    const made = new ChartPlot(place.current!, height, options)
    plot.current = made
    const resized = new ResizeObserver(([entry]) => made.resize(Math.floor(entry!.contentRect.width), height))
    resized.observe(place.current!)
    const seen = new IntersectionObserver((entries) => made.inSight(entries.at(-1)!.isIntersecting), {
      rootMargin: '200px',
    })
    seen.observe(place.current!)
    const recolor = () => made.recolor()
    const dark = matchMedia('(prefers-color-scheme: dark)')
    dark.addEventListener('change', recolor)
    const stops = [
      effect(() => {
        themeName.value
        recolor()
      }),
      effect(() => made.moveCursor(options.link.cursor.value)),
      effect(() => made.zoom(options.link.range.value)),
    ]
    return () => {
      for (const stop of stops) stop()
      dark.removeEventListener('change', recolor)
      resized.disconnect()
      seen.disconnect()
      made.destroy()
    }
  }, [shape, options.link])
  useEffect(() => plot.current!.update(options))

  return <div class="chart-plot" ref={place} role="img" aria-label={label} style={{ height: `${height}px` }} />
}

/** The series with their values at the cursor. */
function Legend({
  title,
  series,
  format,
  formatX,
  link,
  xName,
}: Pick<ChartProps, 'title' | 'series' | 'xName'> & {
  readonly format: (value: number) => string
  readonly formatX: (value: number) => string
  readonly link: ChartLink
}) {
  const x = link.cursor.value
  return (
    <ul class="chart-legend">
      {series.map((one, place) => {
        if (one.isFaint || one.kind === 'bars') return null
        const point = pointAt(one, x)
        const style = one.style ?? place
        return (
          <li key={one.name}>
            <SeriesSign style={style} kind={one.kind ?? 'line'} />
            {one.name !== title && (
              <span class="chart-name" title={one.name}>
                <SafeText text={one.name} />
              </span>
            )}
            <span
              class="chart-value"
              title={point && x !== null && point.x !== x ? `at ${xName} ${formatX(point.x)}` : undefined}
            >
              {point ? format(point.y) : '–'}
            </span>
          </li>
        )
      })}
    </ul>
  )
}

/** The line and the marker of a series. */
export function SeriesSign({ style, kind }: { readonly style: number; readonly kind: 'line' | 'points' }) {
  const { color, dash } = lookOf(style)
  return (
    <svg class="chart-sign" viewBox="0 0 24 12" aria-hidden="true" style={{ color: `var(${color})` }}>
      {kind === 'line' ? (
        <path d="M0 6H24" stroke="currentColor" stroke-width="2" stroke-dasharray={dash.join(' ') || undefined} />
      ) : (
        <path d="M12 0V12" stroke="currentColor" stroke-width="1" />
      )}
      <path d={svgShape(style)} fill="currentColor" />
    </svg>
  )
}
