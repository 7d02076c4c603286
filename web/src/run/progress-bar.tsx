import type { RunOverview } from '../../../src/store/stored-task.ts'
import { count } from '../text/quantities.ts'
import { doneOf } from './pace.ts'
import './progress-bar.css'

const PARTS = ['success', 'failed', 'timeout', 'crashed', 'cancelled'] as const

/** The progress of a run, by state. The text is for people who cannot see the colors. */
export function ProgressBar({ overview }: { readonly overview: RunOverview }) {
  const { counts, total } = overview
  const done = doneOf(overview)
  const of = Math.max(total ?? done, done, 1)
  const words = PARTS.filter((state) => counts[state] > 0).map((state) => `${count(counts[state])} ${state}`)
  const text = `${count(done)} of ${total === undefined ? 'an unknown number of' : count(total)} tasks done: ${words.join(', ') || 'none'}`
  return (
    <div class="progress-bar" role="img" aria-label={text} title={text}>
      {PARTS.map((state) =>
        counts[state] === 0 ? null : (
          <span key={state} class={`progress-${state}`} style={{ width: `${(100 * counts[state]) / of}%` }} />
        ),
      )}
    </div>
  )
}
