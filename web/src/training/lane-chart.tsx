import { useLayoutEffect, useMemo, useRef, useState } from 'preact/hooks'
import type { TrainingDetails } from '../../../src/view/api.ts'
import type { ChartLink } from '../parts/chart.tsx'
import { duration, percent } from '../text/quantities.ts'
import { type Lanes, lanesOf, type Span, timeScale } from './lanes.ts'

const LABEL_PX = 72
const ROW_PX = 12
const GAP_PX = 4
const AXIS_PX = 22
const TICK_PX = 90

/** When episodes were collected and when the learner was training, on one time axis. */
export function LaneChart(props: LaneProps) {
  const { details } = props
  const lanes = useMemo(
    () => lanesOf(details, details.overview.status === 'running' ? Date.now() : undefined),
    [details],
  )
  return lanes ? <LanePanel {...props} lanes={lanes} /> : null
}

interface LaneProps {
  readonly details: TrainingDetails
  readonly link: ChartLink
  readonly onPick: (update: number) => void
}

function LanePanel({ details, link, onPick, lanes }: LaneProps & { readonly lanes: Lanes }) {
  const place = useRef<HTMLDivElement>(null)
  const width = useWidth(place)
  return (
    <section class="panel stack" aria-labelledby="lanes-title">
      <div class="row spread">
        <h2 id="lanes-title">Collecting and learning over time</h2>
        <ul class="chart-legend">
          <li>
            <svg class="chart-sign" viewBox="0 0 24 12" aria-hidden="true">
              <rect class="lane-collect" width="24" height="12" />
            </svg>
            collecting
          </li>
          <li>
            <svg class="chart-sign" viewBox="0 0 24 12" aria-hidden="true">
              <rect class="lane-train" width="24" height="12" />
              <rect fill="url(#lane-hatch)" width="24" height="12" />
            </svg>
            learning
          </li>
        </ul>
      </div>
      <p class="dim">{inWords(lanes)}</p>
      <div ref={place} class="lane-place">
        {width > 0 && <Drawing {...{ lanes, link, onPick, details, width }} />}
      </div>
    </section>
  )
}

function inWords({ spans, bothMs, idleMs, pauses, from, to }: Lanes): string {
  const pausedMs = pauses.reduce((sum, pause) => sum + pause.to - pause.from, 0)
  const paused = pausedMs > 0 ? ` It paused for ${duration(pausedMs)}.` : ''
  const of = (kind: Span['kind']) =>
    spans.reduce((sum, span) => sum + (span.kind === kind ? span.to - span.from : 0), 0)
  const both =
    bothMs >= 1
      ? `; both went on at once for ${duration(bothMs)} (${percent(bothMs / (to - from - pausedMs))} of the time)`
      : '; never both at once'
  return `${duration(of('collect'))} collecting and ${duration(of('train'))} learning in ${duration(to - from - pausedMs)}${both}; neither for ${duration(idleMs - pausedMs)}, in which versions are evaluated and stored.${paused}`
}

function Drawing({
  lanes,
  link,
  details,
  width,
  onPick,
}: LaneProps & { readonly lanes: Lanes; readonly width: number }) {
  const zoomed = link.range.value
  const shown = zoomed
    ? lanes.spans.filter(({ update }) => update >= Math.floor(zoomed[0]) && update <= Math.ceil(zoomed[1]))
    : lanes.spans
  if (shown.length === 0) return <p class="dim">No update in the chosen part</p>
  const from = zoomed ? shown.reduce((least, span) => Math.min(least, span.from), Number.POSITIVE_INFINITY) : lanes.from
  const to = zoomed ? shown.reduce((most, span) => Math.max(most, span.to), from) : lanes.to
  const scale = timeScale(from, to, lanes.pauses)
  const plotPx = width - LABEL_PX
  const x = (time: number) => LABEL_PX + plotPx * scale(time)
  const collectPx = lanes.collectRows * (ROW_PX + 2)
  const trainTop = collectPx + GAP_PX
  const bottom = trainTop + ROW_PX + GAP_PX
  const evaluations = details.evaluations.filter(({ at }) => at >= from && at <= to)
  const height = bottom + (evaluations.length > 0 ? ROW_PX + GAP_PX : 0) + AXIS_PX
  const box = (span: Span) => ({
    x: x(span.from),
    width: Math.max(1, x(span.to) - x(span.from)),
    y: span.kind === 'collect' ? span.row * (ROW_PX + 2) : trainTop,
    height: ROW_PX,
  })
  const pick = (event: MouseEvent) => {
    const time = (event.clientX - (event.currentTarget as Element).getBoundingClientRect().left - LABEL_PX) / plotPx
    const near = shown.reduce((a, b) => (distance(b, time, scale) < distance(a, time, scale) ? b : a))
    onPick(near.update)
  }
  return (
    // biome-ignore lint/a11y/useKeyWithClickEvents: the slider of the page picks updates by keys.
    <svg
      class="lanes"
      width={width}
      height={height}
      role="img"
      aria-label={`Collecting and learning over time. ${inWords(lanes)}`}
      onClick={pick}
    >
      <defs>
        <pattern id="lane-hatch" width="5" height="5" patternUnits="userSpaceOnUse" patternTransform="rotate(45)">
          <rect class="lane-hatch" width="1.5" height="5" />
        </pattern>
      </defs>
      <text x="0" y={ROW_PX - 2}>
        collect
      </text>
      <text x="0" y={trainTop + ROW_PX - 2}>
        learn
      </text>
      {apart(ticks(from, to, Math.max(2, Math.floor(plotPx / TICK_PX))), x).map((time) => (
        <g key={time}>
          <line class="lane-tick" x1={x(time)} x2={x(time)} y1="0" y2={height - AXIS_PX} />
          <text
            x={x(time)}
            y={height - 6}
            text-anchor={x(time) > width - 40 ? 'end' : time === from && !zoomed ? 'start' : 'middle'}
          >
            {time === lanes.from ? 'start' : duration(Math.round(time - lanes.from))}
          </text>
        </g>
      ))}
      {merged(shown.map((span) => ({ ...box(span), span }))).map(({ span, ...at }) => (
        <g key={`${span.kind} ${span.update}`}>
          <rect class={`lane-${span.kind}`} {...at} rx="1" />
          {span.kind === 'train' && at.width > 3 && <rect fill="url(#lane-hatch)" {...at} />}
        </g>
      ))}
      {evaluations.length > 0 && (
        <text x="0" y={bottom + ROW_PX - 2}>
          evaluated
        </text>
      )}
      {evaluations.map(({ version, split, at }) => (
        <path key={`${version} ${split}`} class="lane-evaluation" d={`M${x(at) - 4} ${bottom + 1}h8l-4 9Z`}>
          <title>{`version ${version}, ${split}`}</title>
        </path>
      ))}
      <AtCursor link={link} boxes={(update) => shown.filter((span) => span.update === update).map(box)} />
      {lanes.pauses
        .filter((pause) => pause.from >= from && pause.to <= to)
        .map((pause) => (
          <g key={pause.from}>
            <rect
              class="lane-pause"
              x={x(pause.from)}
              width={x(pause.to) - x(pause.from)}
              y="0"
              height={height - AXIS_PX}
            />
            <title>{`nothing for ${duration(pause.to - pause.from)}`}</title>
          </g>
        ))}
    </svg>
  )
}

/** Frames around the update at the cursor. Only they are redrawn when it moves. */
function AtCursor({
  link,
  boxes,
}: {
  readonly link: ChartLink
  readonly boxes: (update: number) => readonly Omit<Box, 'span'>[]
}) {
  const update = link.cursor.value
  if (update === null) return null
  return boxes(update).map((box, place) => <rect key={place} class="lane-at" {...box} />)
}

const distance = (span: Span, at: number, scale: (time: number) => number) =>
  Math.max(scale(span.from) - at, at - scale(span.to), 0)

interface Box {
  readonly x: number
  readonly y: number
  readonly width: number
  readonly height: number
  readonly span: Span
}

/** Merges boxes that are less than a pixel apart: a long training has more updates than the screen has pixels. */
function merged(boxes: readonly Box[]): Box[] {
  const last = new Map<number, Box>()
  const done: Box[] = []
  for (const box of [...boxes].sort((a, b) => a.x - b.x)) {
    const before = last.get(box.y)
    if (before && box.x - before.x < 2 && box.width < 2) {
      last.set(box.y, { ...before, width: Math.max(before.width, box.x + box.width - before.x) })
      continue
    }
    if (before) done.push(before)
    last.set(box.y, box)
  }
  return [...done, ...last.values()]
}

const STEPS_MS = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1e3, 2e3, 5e3, 10e3, 20e3, 30e3].concat(
  [1, 2, 5, 10, 20, 30, 60, 120, 240, 480, 1440, 2880, 7200, 14_400, 43_200].map((minutes) => minutes * 60_000),
)

function ticks(from: number, to: number, most: number): number[] {
  const step = STEPS_MS.find((ms) => (to - from) / ms <= most) ?? to - from
  return Array.from({ length: Math.floor((to - from) / Math.max(1, step)) + 1 }, (_, nth) => from + nth * step)
}

/** Drops labels that would overlap, because pauses are shortened. */
function apart(times: readonly number[], x: (time: number) => number): number[] {
  let last = Number.NEGATIVE_INFINITY
  return times.filter((time) => {
    if (x(time) - last < (TICK_PX * 2) / 3) return false
    last = x(time)
    return true
  })
}

function useWidth(place: { readonly current: HTMLElement | null }): number {
  const [width, setWidth] = useState(0)
  useLayoutEffect(() => {
    const observer = new ResizeObserver(([entry]) => setWidth(Math.floor(entry!.contentRect.width)))
    observer.observe(place.current!)
    return () => observer.disconnect()
  }, [])
  return width
}
