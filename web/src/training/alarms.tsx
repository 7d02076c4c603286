import { SafeText } from '../parts/safe-text.tsx'
import { count, counted } from '../text/quantities.ts'
import { alarmsOf, type Update } from './update-figures.ts'

const MOST = 10
const MOST_CHARS = 300

/** Alarms, the newest first. Consecutive equal alarms are one line. */
export function Alarms({
  updates,
  onPick,
}: {
  readonly updates: readonly Update[]
  readonly onPick: (update: number) => void
}) {
  const groups = new Map<string, number[]>()
  for (const update of updates)
    for (const alarm of alarmsOf(update)) groups.set(alarm, [...(groups.get(alarm) ?? []), update.number])
  if (groups.size === 0) return null
  const lines = [...groups].sort(([, a], [, b]) => b.at(-1)! - a.at(-1)!)
  return (
    <section class="panel stack training-alarms" aria-labelledby="alarms-title">
      <h2 id="alarms-title">{counted(lines.length, 'alarm')}</h2>
      <ul>
        {lines.slice(0, MOST).map(([alarm, numbers]) => (
          <li key={alarm}>
            <button type="button" class="training-link" onClick={() => onPick(numbers.at(-1)!)}>
              update {count(numbers.at(-1)!)}
            </button>
            {numbers.length > 1 && <span class="dim"> and {counted(numbers.length - 1, 'earlier one')}</span>}:{' '}
            <SafeText text={alarm.length > MOST_CHARS ? `${alarm.slice(0, MOST_CHARS)} …` : alarm} />
          </li>
        ))}
      </ul>
      {lines.length > MOST && (
        <p class="dim">and {count(lines.length - MOST)} more; the details of an update have its alarms</p>
      )}
    </section>
  )
}
