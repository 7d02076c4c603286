import { useEffect, useLayoutEffect, useMemo, useRef, useState } from 'preact/hooks'
import { themeName } from '../parts/theme-button.tsx'
import { useWidth } from '../parts/use-width.ts'
import { go, taskHref } from '../route.ts'
import { namedAttempts } from '../task/attempts.ts'
import { counted } from '../text/quantities.ts'
import { lanesOf, repeatsIn, startsAfterUnfinished } from './lanes.ts'
import type { RunData } from './run-data.ts'
import { drawTimeline } from './timeline-draw.ts'
import { stepFrom } from './timeline-keys.ts'
import { type Look, lookOf } from './timeline-look.ts'
import { type Scene, type Spot, sceneOf, spotAt, timeAt, visibleHeight } from './timeline-scene.ts'
import { SpotText } from './timeline-spot.tsx'
import { TimelineTable } from './timeline-table.tsx'
import { type Span, zoomed } from './timeline-zoom.ts'
import './timeline.css'

const NARROW = 600
const DRAG_PX = 4

/** What ran where and when: a lane per worker. Attempts are loaded when the timeline comes into sight. */
export function Timeline({ data }: { readonly data: RunData }) {
  const section = useRef<HTMLElement>(null)
  // The task table is loaded first, because people wait for it.
  const isTheirTurn = data.tasksLoaded.value
  useEffect(() => {
    if (!isTheirTurn) return
    const observer = new IntersectionObserver((entries) => {
      if (entries.some(({ isIntersecting }) => isIntersecting)) data.loadAttempts()
    })
    observer.observe(section.current!)
    return () => observer.disconnect()
  }, [data, isTheirTurn])
  const { count } = data.attempts
  return (
    <section class="panel stack timeline" aria-labelledby="timeline-title" ref={section}>
      <div class="row spread">
        <h2 id="timeline-title">Workers</h2>
        <span class="dim" role="status">
          {data.attemptsChanged.value > 0 && counted(count, 'attempt')}
          {data.attemptsLoaded.value === false && ', loading …'}
        </span>
      </div>
      {count > 0 ? (
        <Lanes data={data} />
      ) : (
        <p class="dim timeline-none">
          {data.attemptsLoaded.value ? 'No attempt has started so far.' : 'Loading attempts …'}
        </p>
      )}
    </section>
  )
}

function Lanes({ data }: { readonly data: RunData }) {
  const box = useRef<HTMLDivElement>(null)
  const scroller = useRef<HTMLDivElement>(null)
  const canvas = useRef<HTMLCanvasElement>(null)
  const [span, setSpan] = useState<Span | undefined>(undefined)
  const [hovered, setHovered] = useState<(Spot & { readonly x: number; readonly y: number }) | undefined>(undefined)
  const [focused, setFocused] = useState<Spot | undefined>(undefined)
  const [dragged, setDragged] = useState<{ readonly from: number; readonly to: number } | undefined>(undefined)
  const width = useWidth(box)
  const look = useLook(box)
  const { scene, whole } = useScene(data, width, span)
  const draw = () => {
    const context = canvas.current?.getContext('2d')
    if (!context || !look || !scene) return
    const scale = devicePixelRatio || 1
    const [wide, tall] = [scene.width, scene.axis + visibleHeight(scene)]
    const [pixelsWide, pixelsTall] = [Math.round(wide * scale), Math.round(tall * scale)]
    if (context.canvas.width !== pixelsWide) context.canvas.width = pixelsWide
    if (context.canvas.height !== pixelsTall) context.canvas.height = pixelsTall
    context.setTransform(scale, 0, 0, scale, 0, 0)
    drawTimeline(context, scene, look, scroller.current?.scrollTop ?? 0, { focused, hovered })
  }
  useLayoutEffect(draw)
  const zoom = (times: number, around?: number) => {
    if (scene) setSpan(zoomed(scene, whole, times, around))
  }
  const pan = (share: number) => {
    if (!scene) return
    const by = share * (scene.to - scene.from)
    setSpan(zoomed({ from: scene.from + by, to: scene.to + by }, whole, 1))
  }
  useWheel(canvas, (event) => {
    if (!scene) return
    const isZoom = event.ctrlKey || event.metaKey || document.activeElement === canvas.current
    if (Math.abs(event.deltaX) > Math.abs(event.deltaY)) pan(event.deltaX / (scene.width - scene.left))
    else if (isZoom) zoom(Math.exp(-event.deltaY / 300), timeAt(scene, event.offsetX))
    else return
    event.preventDefault()
  })
  if (!scene) return <div ref={box} class="timeline-box" />
  const open = (spot: Spot | undefined) => {
    const row = spot && scene.lanes[spot.lane]?.rows[spot.place]
    if (row === undefined) return
    const number = data.attempts.column('task')[row]!
    const task = data.tasks.rowOf(number)
    // The attempt is named explicitly, because the block may be of a retried or interrupted attempt, which the task page
    // does not show by default.
    const attempt = namedAttempts(data.attempts.ofTask(number)).find(({ details }) => details.row === row)?.name
    if (task !== undefined) go(taskHref(data.run, data.tasks.ids[task]!, { attempt }))
  }
  const spotOf = (event: PointerEvent) =>
    event.offsetY < scene.axis
      ? undefined
      : spotAt(scene, event.offsetX, event.offsetY - scene.axis + (scroller.current?.scrollTop ?? 0))
  const onKey = (event: KeyboardEvent) => {
    const { key } = event
    if (key === '+' || key === '=') zoom(2)
    else if (key === '-') zoom(0.5)
    else if (key === '0' || key === 'Escape') setSpan(undefined)
    else if (event.shiftKey && key === 'ArrowRight') pan(0.25)
    else if (event.shiftKey && key === 'ArrowLeft') pan(-0.25)
    else if (key === 'Enter') open(focused)
    else {
      const next = stepFrom(scene, focused, key)
      if (!next) return
      setFocused(next)
      setSpan(bringIntoView(scene, whole, next))
      scrollToLane(scroller.current, scene, next.lane)
    }
    event.preventDefault()
  }
  const shown = hovered ?? focused
  return (
    <div ref={box} class="timeline-box">
      <div
        ref={scroller}
        class="timeline-scroller"
        style={{ height: `${scene.axis + visibleHeight(scene)}px` }}
        onScroll={draw}
      >
        <div style={{ height: `${scene.axis + scene.height}px` }}>
          {/* biome-ignore lint/a11y/noInteractiveElementToNoninteractiveRole: it has keys of its own, which its label explains */}
          <canvas
            ref={canvas}
            class="timeline-canvas"
            tabIndex={0}
            role="application"
            aria-label="Timeline of workers. Arrow keys move between attempts, Enter opens the task, plus and minus zoom, Shift with arrow keys moves, F leads to the next failure. The same as a table follows."
            style={{ width: `${scene.width}px`, height: `${scene.axis + visibleHeight(scene)}px` }}
            onKeyDown={onKey}
            onBlur={() => setFocused(undefined)}
            onPointerDown={(event) => {
              if (event.button !== 0) return
              event.currentTarget.setPointerCapture(event.pointerId)
              setDragged({ from: event.offsetX, to: event.offsetX })
            }}
            onPointerMove={(event) => {
              if (dragged) setDragged({ from: dragged.from, to: event.offsetX })
              const spot = spotOf(event)
              setHovered(spot && { ...spot, x: event.offsetX, y: event.offsetY })
            }}
            onPointerUp={(event) => {
              setDragged(undefined)
              if (!dragged) return
              const [from, to] = [Math.min(dragged.from, event.offsetX), Math.max(dragged.from, event.offsetX)]
              if (to - from <= DRAG_PX) open(spotOf(event))
              else setSpan(zoomed({ from: timeAt(scene, from), to: timeAt(scene, to) }, whole, 1))
            }}
            onPointerCancel={() => setDragged(undefined)}
            onPointerLeave={() => setHovered(undefined)}
            onDblClick={() => setSpan(undefined)}
          />
        </div>
      </div>
      {dragged && Math.abs(dragged.to - dragged.from) > DRAG_PX && (
        <div
          class="timeline-selection"
          style={{
            left: `${Math.max(scene.left, Math.min(dragged.from, dragged.to))}px`,
            width: `${Math.abs(dragged.to - dragged.from)}px`,
          }}
        />
      )}
      {hovered && !dragged && (
        <div
          class="timeline-tip panel"
          style={{
            top: `${hovered.y + 16}px`,
            ...(hovered.x > scene.width / 2
              ? { right: `${scene.width - hovered.x + 8}px` }
              : { left: `${hovered.x + 12}px` }),
          }}
        >
          <SpotText data={data} scene={scene} spot={hovered} />
        </div>
      )}
      <p class="hidden-text" role="status">
        {focused && <SpotText data={data} scene={scene} spot={focused} />}
      </p>
      <div class="timeline-foot">
        <div class="row timeline-zoom">
          <button type="button" aria-label="Zoom in" onClick={() => zoom(2)}>
            +
          </button>
          <button type="button" aria-label="Zoom out" disabled={span === undefined} onClick={() => zoom(0.5)}>
            −
          </button>
          <button type="button" disabled={span === undefined} onClick={() => setSpan(undefined)}>
            Whole run
          </button>
        </div>
        <Legend shown={shown !== undefined && !hovered} data={data} scene={scene} focused={focused} />
      </div>
      <TimelineTable data={data} lanes={scene.lanes} />
    </div>
  )
}

/** Explains the marks or, during keyboard navigation, the selected attempt. */
function Legend(props: {
  readonly shown: boolean
  readonly data: RunData
  readonly scene: Scene
  readonly focused: Spot | undefined
}) {
  if (props.shown && props.focused)
    return (
      <span class="timeline-legend">
        <SpotText data={props.data} scene={props.scene} spot={props.focused} />
      </span>
    )
  return (
    <span class="timeline-legend dim">
      {LEGEND.map(([kind, text]) => (
        <span key={kind}>
          <span class={`timeline-mark timeline-mark-${kind}`} aria-hidden="true" /> {text}
        </span>
      ))}
      <span>
        Drag or Ctrl + wheel zooms · keys: <kbd>+</kbd> <kbd>−</kbd> <kbd>0</kbd> zoom, <kbd>←</kbd> <kbd>→</kbd>{' '}
        <kbd>↑</kbd> <kbd>↓</kbd> attempts, <kbd>F</kbd> next failure, <kbd>Enter</kbd> open
      </span>
    </span>
  )
}

const LEGEND = [
  ['success', 'success'],
  ['failed', '× failed'],
  ['timeout', 't timeout'],
  ['crashed', '! crashed'],
  ['cancelled', '– cancelled'],
  ['again', '↻ tried again'],
  ['superseded', '≠ superseded'],
  ['running', '▸ running'],
  ['interrupted', '‖ interrupted: its worker or session ended; does not count'],
  ['lost', 'worker lost'],
] as const

function useScene(data: RunData, width: number, span: Span | undefined) {
  const changes = data.attemptsChanged.value
  const workers = data.workers.value
  const overview = data.overview.value
  const sessions = data.details.value?.sessions ?? []
  const isLive = overview?.status === 'running'
  const now = isLive ? Math.max(data.attempts.lastEnd, Date.now()) : data.attempts.lastEnd
  const triedAgain = useMemo(() => startsAfterUnfinished(data.attempts), [data.attempts, changes])
  const repeats = useMemo(() => repeatsIn(data.attempts), [data.attempts, changes])
  const lanes = useMemo(() => {
    const worker = data.attempts.column('worker')
    const last = sessions.at(-1)?.number
    const endOf = (row: number) => {
      const entry = workers.get(worker[row]!)
      const session = sessions.find(({ number }) => number === entry?.session)
      const isGoing = isLive && (!entry || entry.session === last)
      const end = entry?.leftAt ?? (isGoing ? now : (session?.endedAt ?? session?.seenAt ?? now))
      return Math.min(end, triedAgain.get(row) ?? Infinity)
    }
    return lanesOf(data.attempts, workers, { until: endOf, triedAgain })
  }, [data.attempts, changes, workers, isLive, sessions.length])
  const origin = overview?.startedAt ?? data.attempts.firstStart
  const whole = { from: Math.min(origin, data.attempts.firstStart), to: Math.max(now, origin + 1) }
  if (width === 0) return { scene: undefined, whole }
  const { from, to } = span ?? whole
  const left = width < NARROW ? 64 : 110
  const liveSession = isLive ? sessions.at(-1)?.number : undefined
  const scene = sceneOf({
    table: data.attempts,
    lanes,
    left,
    width,
    from,
    to,
    origin,
    sessions,
    liveSession,
    triedAgain,
    repeats,
  })
  return { scene, whole }
}

/** Read again when the theme changes. */
function useLook(box: { readonly current: HTMLElement | null }): Look | undefined {
  const [look, setLook] = useState<Look | undefined>(undefined)
  const theme = themeName.value
  useLayoutEffect(() => {
    const dark = matchMedia('(prefers-color-scheme: dark)')
    const read = () => setLook(lookOf(box.current!))
    read()
    dark.addEventListener('change', read)
    return () => dark.removeEventListener('change', read)
  }, [theme])
  return look
}

/** Not a passive listener, because zooming must not scroll the page. */
function useWheel(canvas: { readonly current: HTMLElement | null }, listener: (event: WheelEvent) => void): void {
  const latest = useRef(listener)
  latest.current = listener
  const element = canvas.current
  useEffect(() => {
    const listen = (event: WheelEvent) => latest.current(event)
    element?.addEventListener('wheel', listen, { passive: false })
    return () => element?.removeEventListener('wheel', listen)
  }, [element])
}

function bringIntoView(scene: Scene, whole: Span, { lane, place }: Spot): Span {
  const [start, end] = [scene.lanes[lane]!.start[place]!, scene.lanes[lane]!.end[place]!]
  const { from, to } = scene
  if (start >= from && end <= to) return { from, to }
  const middle = (start + end) / 2
  const half = (to - from) / 2
  return zoomed({ from: middle - half, to: middle + half }, whole, 1)
}

function scrollToLane(scroller: HTMLElement | null, scene: Scene, lane: number): void {
  if (!scroller) return
  const [top, bottom] = [scene.tops[lane]!, scene.tops[lane]! + scene.heights[lane]!]
  const room = visibleHeight(scene)
  if (top < scroller.scrollTop) scroller.scrollTop = top
  else if (bottom > scroller.scrollTop + room) scroller.scrollTop = bottom - room
}
