import { figure } from '../text/quantities.ts'

export interface ChartPoint {
  readonly x: number
  readonly y: number
  /** An interval around `y`: a band around a line, or a bar at a point. */
  readonly low?: number
  readonly high?: number
}

export interface ChartSeries {
  readonly name: string
  /** Sorted by x. */
  readonly points: readonly ChartPoint[]
  /** Default: a line. `bars`: as in a histogram; each bar is as wide as the smallest distance of two. */
  readonly kind?: 'line' | 'points' | 'bars'
  /** The number of the style. Default: the position of the series. Set it if a series must look the same in several charts. */
  readonly style?: number
  /** A thin, pale line behind others, which is not in the legend. */
  readonly isFaint?: boolean
}

type Column = (number | null)[]

export interface ChartColumns {
  readonly xs: number[]
  /** For each series: its values, and the ends of their intervals. Null: no value. */
  readonly columns: readonly { readonly ys: Column; readonly lows: Column; readonly highs: Column }[]
  /** The number of values that a logarithmic scale cannot show. */
  readonly left: number
}

/** The points of all series on one x axis. `isLog`: values from 0 down are left out, and intervals are cut. */
export function columnsOf(series: readonly ChartSeries[], isLog: boolean): ChartColumns {
  const xs = [...new Set(series.flatMap(({ points }) => points.map(({ x }) => x)))].sort((a, b) => a - b)
  const places = new Map(xs.map((x, place) => [x, place]))
  let left = 0
  const columns = series.map(({ points }) => {
    const [ys, lows, highs] = [blank(xs), blank(xs), blank(xs)]
    for (const { x, y, low, high } of points) {
      const place = places.get(x)!
      if (!Number.isFinite(y) || (isLog && y <= 0)) {
        left++
        continue
      }
      ys[place] = y
      if (low === undefined || high === undefined) continue
      const lowest = isLog ? Math.max(low, y / 100) : low
      lows[place] = Number.isFinite(lowest) ? lowest : y
      highs[place] = Number.isFinite(high) ? high : y
    }
    return { ys, lows, highs }
  })
  return { xs, columns, left }
}

const blank = (xs: readonly number[]): Column => new Array<number | null>(xs.length).fill(null)

/** The lowest and the highest value, with some room. A single value is in the middle. */
export function rangeOf({ columns }: ChartColumns, isLog: boolean): [number, number] {
  let [low, high] = [Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY]
  for (const { ys, lows, highs } of columns)
    for (const [place, y] of ys.entries()) {
      if (y === null) continue
      low = Math.min(low, lows[place] ?? y)
      high = Math.max(high, highs[place] ?? y)
    }
  if (low > high) return isLog ? [1, 10] : [0, 1]
  if (isLog) return [10 ** Math.floor(Math.log10(low)), 10 ** (Math.floor(Math.log10(high)) + 1)]
  const room = high > low ? 0.06 * (high - low) : Math.abs(low) / 2 || 1
  // The axis of a figure that is never negative starts at 0 at the lowest.
  return [low >= 0 && low - room < 0 ? 0 : low - room, high + room]
}

/** The value of a series at x; of points, the last one up to x. Without x, the last. */
export function pointAt({ points, kind }: ChartSeries, x: number | null): ChartPoint | undefined {
  if (x === null) return points.at(-1)
  let [from, to] = [0, points.length]
  while (from < to) {
    const middle = (from + to) >> 1
    if (points[middle]!.x <= x) from = middle + 1
    else to = middle
  }
  const found = points[from - 1]
  return kind === 'points' || found?.x === x ? found : undefined
}

/** A description of a chart for screen readers. */
export function inWords(series: readonly ChartSeries[], xName: string, format: (value: number) => string): string {
  return series
    .filter(({ isFaint, points }) => !isFaint && points.length > 0)
    .map(({ name, points }) => {
      const [first, last] = [points[0]!, points.at(-1)!]
      if (points.length === 1) return `${name}: ${format(first.y)} at ${xName} ${figure(first.x)}`
      const lowest = points.reduce((a, b) => (b.y < a.y ? b : a))
      const highest = points.reduce((a, b) => (b.y > a.y ? b : a))
      return `${name}: ${points.length} values, ${format(first.y)} at ${xName} ${figure(first.x)}, ${format(last.y)} at ${xName} ${figure(last.x)}; lowest ${format(lowest.y)} at ${figure(lowest.x)}, highest ${format(highest.y)} at ${figure(highest.x)}`
    })
    .join('. ')
}
