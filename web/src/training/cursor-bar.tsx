import { useLayoutEffect } from 'preact/hooks'
import type { TrainingDetails } from '../../../src/view/api.ts'
import type { ChartLink } from '../parts/chart.tsx'
import { setQuery } from '../route.ts'
import { count } from '../text/quantities.ts'
import type { ChartSettings } from './figure-charts.tsx'
import type { FigureKind } from './update-figures.ts'

const WINDOWS = [1, 5, 10, 25, 50, 100]
const FAR = 10
/** The number of figures that are shown for the update at the cursor. */
const SAID = 6

/** The controls of all charts: the update at the cursor with its figures in words, smoothing, scale and zoom. */
export function CursorBar({
  details,
  numbers,
  kinds,
  settings,
  link,
  onPick,
}: {
  readonly details: TrainingDetails
  readonly numbers: readonly ReadonlyMap<string, number>[]
  readonly kinds: readonly FigureKind[]
  readonly settings: ChartSettings
  readonly link: ChartLink
  readonly onPick: (update: number | undefined) => void
}) {
  const { updates } = details
  const x = link.cursor.value
  const found = x === null ? updates.length - 1 : updates.findIndex(({ number }) => number >= x)
  const place = found < 0 ? updates.length - 1 : found
  const update = updates[place]
  useKeys(details, link, onPick)
  if (!update) return null
  const said = kinds
    .filter(({ key }) => numbers[place]!.has(key))
    .slice(0, SAID)
    .map(({ key, name, format }) => `${name.slice(0, 60)} ${format(numbers[place]!.get(key)!)}`)
    .join(', ')
  const version =
    update.versionOut === null ? `version ${update.versionIn}` : `version ${update.versionIn} → ${update.versionOut}`
  const words = `Update ${count(update.number)}, epoch ${update.epoch}, ${version}: ${said}`
  return (
    <section class="panel training-bar" aria-labelledby="charts-title">
      <h2 id="charts-title" class="hidden-text">
        Charts
      </h2>
      <div class="row">
        <label class="training-slider">
          Update
          <input
            type="range"
            min={0}
            max={updates.length - 1}
            step={1}
            value={place}
            aria-valuetext={words}
            onInput={(event) => {
              const number = updates[Number(event.currentTarget.value)]!.number
              link.pinned.value = number
              link.cursor.value = number
            }}
          />
          <span class="number">
            {count(update.number)} of {count(updates.at(-1)!.number)}
          </span>
        </label>
        <button type="button" onClick={() => onPick(update.number)}>
          Details
        </button>
        <label>
          Smoothing{' '}
          <select
            value={String(settings.window)}
            onChange={(event) => {
              const window = event.currentTarget.value
              setQuery({ smooth: window === '1' ? undefined : window })
            }}
          >
            {[...new Set([...WINDOWS, settings.window])].map((window) => (
              <option key={window} value={String(window)}>
                {window === 1 ? 'none' : `mean of ${window} updates`}
              </option>
            ))}
          </select>
        </label>
        <button
          type="button"
          aria-pressed={settings.isLog}
          onClick={() => setQuery({ log: settings.isLog ? undefined : '1' })}
        >
          Log scale
        </button>
        {link.range.value && (
          <button
            type="button"
            onClick={() => {
              link.range.value = null
            }}
          >
            Show all updates
          </button>
        )}
        <details class="training-keys">
          <summary>Keys</summary>
          <p>
            <kbd>←</kbd> <kbd>→</kbd> move the cursor by an update, with <kbd>Shift</kbd> by {FAR}; <kbd>Enter</kbd>{' '}
            shows the update; <kbd>Esc</kbd> closes it; <kbd>+</kbd> <kbd>-</kbd> zoom, <kbd>0</kbd> shows all;{' '}
            <kbd>l</kbd> log scale.
          </p>
        </details>
      </div>
      <p class="training-words">{words}</p>
    </section>
  )
}

function useKeys({ updates }: TrainingDetails, link: ChartLink, onPick: (update: number | undefined) => void): void {
  useLayoutEffect(() => {
    const pressed = (event: KeyboardEvent) => {
      const { target, key, shiftKey } = event
      if (event.ctrlKey || event.metaKey || event.altKey || updates.length === 0) return
      if (target instanceof Element && target.closest('input, select, textarea, summary, button, a, .scroll-x')) {
        if (key !== 'Escape') return
      }
      const last = updates.at(-1)!.number
      const at = Math.min(link.cursor.peek() ?? last, last)
      if (key === 'ArrowLeft' || key === 'ArrowRight') {
        const to = at + (key === 'ArrowLeft' ? -1 : 1) * (shiftKey ? FAR : 1)
        link.pinned.value = Math.min(last, Math.max(updates[0]!.number, to))
        link.cursor.value = link.pinned.value
      } else if (key === 'Enter') onPick(at)
      else if (key === 'Escape') onPick(undefined)
      else if (key === 'l')
        setQuery({ log: new URLSearchParams(location.hash.split('?')[1]).has('log') ? undefined : '1' })
      else if (key === '0') link.range.value = null
      else if (key === '+' || key === '-') {
        const [low, high] = link.range.peek() ?? [updates[0]!.number, last]
        const half = ((high - low) / 2) * (key === '+' ? 0.5 : 2)
        const [from, to] = [Math.max(updates[0]!.number, at - half), Math.min(last, at + half)]
        link.range.value =
          to - from >= last - updates[0]!.number ? null : to - from < 1 ? link.range.peek() : [from, to]
      } else return
      event.preventDefault()
    }
    addEventListener('keydown', pressed)
    return () => removeEventListener('keydown', pressed)
  })
}
