import './valid-language.ts'
import uPlot from 'uplot'
import type { ChartColumns, ChartSeries } from './chart-data.ts'
import type { ChartLink } from './chart-link.ts'
import { colorsOf, faded, type Look, lookOf } from './chart-marks.ts'

export interface PlotOptions {
  readonly series: readonly ChartSeries[]
  readonly data: ChartColumns
  readonly isLog: boolean
  readonly range: readonly [low: number, high: number]
  readonly format: (value: number) => string
  readonly formatX: (value: number) => string
  readonly link: ChartLink
  readonly onPick: ((x: number) => void) | undefined
}

const MARKER_PX = 3.5
/** A line with more values has markers only at some of them. */
const ALL_MARKERS = 40
const SOME_MARKERS = 10
/** If the pointer moves less than this between down and up, it is a click. */
const CLICK_PX = 4
const BAND = 0.16
const AXIS_COLORS = ['--dim', '--line', '--text']
const FONT = '11px system-ui, "DejaVu Sans", sans-serif'

/** A uPlot chart: draws intervals and markers, and shares its cursor. */
export class ChartPlot {
  readonly #place: HTMLElement
  readonly #plot: uPlot
  #options: PlotOptions
  #colors: Map<string, string>
  /** Charts out of sight are drawn when they come into sight: a page may have dozens. */
  #isInSight = true
  #isStale = false
  /** True while another chart moves the cursor. */
  #isFollowing = false
  #isDown: { readonly x: number; readonly y: number } | undefined

  constructor(place: HTMLElement, height: number, options: PlotOptions) {
    this.#place = place
    this.#options = options
    this.#colors = this.#readColors()
    this.#plot = new uPlot(this.#uPlotOptions(Math.max(80, place.clientWidth), height), this.#columns(), place)
    this.#listen(this.#plot.over)
  }

  update(options: PlotOptions): void {
    const isSame = options.data.xs.length === this.#options.data.xs.length
    this.#options = options
    if (this.#isLater()) return
    this.#plot.setData(this.#columns(), true)
    if (!isSame) this.moveCursor(options.link.cursor.peek())
  }

  inSight(isInSight: boolean): void {
    this.#isInSight = isInSight
    if (!isInSight || !this.#isStale) return
    this.#isStale = false
    this.#plot.setData(this.#columns(), true)
    this.moveCursor(this.#options.link.cursor.peek())
  }

  #isLater(): boolean {
    this.#isStale ||= !this.#isInSight
    return !this.#isInSight
  }

  resize(width: number, height: number): void {
    if (width > 0 && width !== this.#plot.width) this.#plot.setSize({ width, height })
  }

  recolor(): void {
    this.#colors = this.#readColors()
    this.#plot.redraw(false, true)
  }

  zoom(range: readonly [number, number] | null): void {
    if (this.#isLater()) return
    const { xs } = this.#options.data
    const [min, max] = range ?? [xs[0] ?? 0, xs.at(-1) ?? 1]
    this.#plot.setScale('x', { min, max })
  }

  moveCursor(x: number | null): void {
    if (this.#isLater()) return
    this.#isFollowing = true
    const { over } = this.#plot
    const isHere = over.matches(':hover')
    if (!isHere)
      this.#plot.setCursor(
        x === null
          ? { left: -10, top: -10 }
          : { left: this.#plot.valToPos(x, 'x'), top: Math.max(0, over.clientHeight / 2) },
        false,
      )
    this.#isFollowing = false
  }

  destroy(): void {
    this.#plot.destroy()
  }

  #columns(): uPlot.AlignedData {
    const { xs, columns } = this.#options.data
    return [xs, ...columns.flatMap(({ ys, lows, highs }) => [ys, lows, highs])] as uPlot.AlignedData
  }

  #readColors(): Map<string, string> {
    const names = this.#options.series.map((one, place) => lookOf(one.style ?? place).color)
    return colorsOf(this.#place, [...AXIS_COLORS, ...names])
  }

  #uPlotOptions(width: number, height: number): uPlot.Options {
    const { series, isLog } = this.#options
    const all: uPlot.Series[] = [{}]
    const bands: uPlot.Band[] = []
    const pointed = new Set<number>()
    for (const [place, one] of series.entries()) {
      const look = lookOf(one.style ?? place)
      all.push(this.#seriesOf(one, place, look))
      if (!one.isFaint && one.kind !== 'bars') pointed.add(all.length - 1)
      // The ends of intervals: only the band between them is drawn.
      const end: uPlot.Series = { width: 0, spanGaps: true, points: { show: false }, stroke: 'transparent' }
      all.push(end, end)
      if (one.kind !== 'points')
        bands.push({
          series: [all.length - 1, all.length - 2],
          fill: () => faded(this.#colors.get(look.color)!, BAND),
        })
    }
    const axis = {
      stroke: () => this.#colors.get('--dim')!,
      font: FONT,
      grid: { stroke: () => this.#colors.get('--line')!, width: 1 },
      ticks: { show: false },
    } satisfies uPlot.Axis
    return {
      width,
      height,
      series: all,
      bands,
      legend: { show: false },
      cursor: {
        y: false,
        drag: { x: true, y: false, setScale: false },
        points: { size: (_, at) => (pointed.has(at) ? 8 : 0) },
        focus: { prox: -1 },
      },
      scales: {
        x: { time: false, range: (_, min, max) => this.#rangeX(min, max) },
        y: {
          distr: isLog ? 3 : 1,
          range: () => [...this.#options.range] as [number, number],
        },
      },
      axes: [
        {
          ...axis,
          size: 26,
          gap: 4,
          values: (_, splits) => splits.map((value) => this.#options.formatX(value)),
          incrs: WHOLE_STEPS,
        },
        {
          ...axis,
          size: 54,
          gap: 4,
          space: 30,
          values: (_, splits) => splits.map((value) => (value === null ? '' : this.#options.format(value))),
        },
      ],
      hooks: {
        draw: [(u) => this.#drawIntervals(u)],
        setCursor: [(u) => this.#tellCursor(u)],
        setSelect: [(u) => this.#tellRange(u)],
      },
    }
  }

  #seriesOf({ kind = 'line', isFaint = false }: ChartSeries, place: number, look: Look): uPlot.Series {
    const color = () => this.#colors.get(look.color)!
    if (kind === 'bars')
      return {
        stroke: color,
        fill: () => faded(color(), 0.75),
        width: 0,
        points: { show: false },
        paths: uPlot.paths.bars!({ size: [0.92, 200] }),
      }
    return {
      stroke: color,
      alpha: isFaint ? 0.35 : 1,
      width: kind === 'points' ? 0 : isFaint ? 1 : 2,
      dash: [...look.dash],
      spanGaps: true,
      ...(kind === 'points' && { paths: () => null }),
      points: {
        show: !isFaint,
        width: 0,
        stroke: color,
        fill: color,
        paths: (u, at, from, to) => this.#markers(u, at, from, to, place, look),
      },
    }
  }

  /** Draws all markers of points and short lines, and some markers of long lines if there are several series. */
  #markers(u: uPlot, at: number, from: number, to: number, place: number, look: Look): uPlot.Series.Points.Paths {
    const { series, data } = this.#options
    const { ys } = data.columns[place]!
    const known: number[] = []
    for (let index = from; index <= to; index++) if (ys[index] != null) known.push(index)
    const isDense = series[place]!.kind !== 'points' && known.length > ALL_MARKERS
    const isAlone = series.filter(({ kind, isFaint }) => kind !== 'points' && !isFaint).length === 1
    const step = isDense ? Math.ceil(known.length / SOME_MARKERS) : 1
    const offset = isDense ? (place * 3) % step : 0
    const fill = new Path2D()
    const size = MARKER_PX * devicePixelRatio
    for (const [nth, index] of known.entries()) {
      if (isDense && (isAlone || nth % step !== offset)) continue
      look.shape(fill, u.valToPos(data.xs[index]!, 'x', true), u.valToPos(ys[index]!, u.series[at]!.scale!, true), size)
    }
    return { stroke: null, fill, clip: null, flags: 1 }
  }

  /** The intervals of points, as bars with caps. */
  #drawIntervals(u: uPlot): void {
    const { series, data } = this.#options
    const { ctx } = u
    const cap = 3 * devicePixelRatio
    ctx.save()
    ctx.beginPath()
    ctx.rect(u.bbox.left - cap, u.bbox.top, u.bbox.width + 2 * cap, u.bbox.height)
    ctx.clip()
    for (const [place, { kind, style }] of series.entries()) {
      const { ys, lows, highs } = data.columns[place]!
      if (kind !== 'points') continue
      ctx.beginPath()
      for (const [index, y] of ys.entries()) {
        if (y === null || lows[index] === null) continue
        const x = u.valToPos(data.xs[index]!, 'x', true)
        const [low, high] = [u.valToPos(lows[index]!, 'y', true), u.valToPos(highs[index]!, 'y', true)]
        ctx.moveTo(x, low)
        ctx.lineTo(x, high)
        for (const end of [low, high]) {
          ctx.moveTo(x - cap, end)
          ctx.lineTo(x + cap, end)
        }
      }
      ctx.lineWidth = 1.5 * devicePixelRatio
      ctx.strokeStyle = this.#colors.get(lookOf(style ?? place).color)!
      ctx.stroke()
    }
    ctx.restore()
  }

  #rangeX(min: number | null, max: number | null): [number, number] {
    const { xs } = this.#options.data
    const zoomed = this.#options.link.range.peek()
    const [low, high] = zoomed ?? [xs[0] ?? min ?? 0, xs.at(-1) ?? max ?? 1]
    if (zoomed) return [low, high]
    if (this.#options.series.some(({ kind }) => kind === 'bars')) {
      const width = smallestStep(xs)
      return [low - width / 2, high + width / 2]
    }
    if (low === high) return [low - 1, high + 1]
    const room = 0.012 * (high - low)
    return [low - room, high + room]
  }

  #tellCursor(u: uPlot): void {
    if (this.#isFollowing) return
    const { idx } = u.cursor
    const { link, data } = this.#options
    link.cursor.value = idx == null ? link.pinned.peek() : (data.xs[idx] ?? null)
  }

  #tellRange(u: uPlot): void {
    const { left, width } = u.select
    if (width < CLICK_PX) return
    const [low, high] = [u.posToVal(left, 'x'), u.posToVal(left + width, 'x')]
    u.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false)
    if (high > low) this.#options.link.range.value = [low, high]
  }

  #listen(over: HTMLElement): void {
    over.addEventListener('mousedown', ({ clientX, clientY }) => {
      this.#isDown = { x: clientX, y: clientY }
    })
    over.addEventListener('click', ({ clientX, clientY }) => {
      const down = this.#isDown
      if (!down || Math.hypot(clientX - down.x, clientY - down.y) > CLICK_PX) return
      const { idx } = this.#plot.cursor
      const x = idx == null ? undefined : this.#options.data.xs[idx]
      if (x !== undefined) this.#options.onPick?.(x)
    })
    over.addEventListener('dblclick', () => {
      this.#options.link.range.value = null
    })
  }
}

function smallestStep(xs: readonly number[]): number {
  let smallest = Number.POSITIVE_INFINITY
  for (let place = 1; place < xs.length; place++) smallest = Math.min(smallest, xs[place]! - xs[place - 1]!)
  return Number.isFinite(smallest) ? smallest : 1
}

/** 1, 2, 5, 10, …: updates and versions have no fractions; smaller ones for times and bins. */
const WHOLE_STEPS = Array.from({ length: 18 }, (_, power) => [1, 2, 5].map((step) => step * 10 ** (power - 6))).flat()
