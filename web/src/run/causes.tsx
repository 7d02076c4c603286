import type { RefObject } from 'preact'
import { useLayoutEffect, useMemo, useRef, useState } from 'preact/hooks'
import { SafeText, visible } from '../parts/safe-text.tsx'
import { setQuery } from '../route.ts'
import { count, percent } from '../text/quantities.ts'
import type { TaskFilter } from './task-filter.ts'
import type { TaskTable } from './task-table.ts'

const SHOWN = 8

/** Failed tasks by cause, the most frequent first. A click on a cause filters the table. */
export function Causes(props: { readonly table: TaskTable; readonly changes: number; readonly filter: TaskFilter }) {
  const { table, changes, filter } = props
  const [isAll, setAll] = useState(false)
  const causes = useMemo(() => countCauses(table, filter.withSubTasks), [table, changes, filter.withSubTasks])
  const most = causes[0]?.count ?? 1
  const sum = causes.reduce((sum, cause) => sum + cause.count, 0)
  return (
    <section class="panel stack" aria-labelledby="causes-title">
      <h2 id="causes-title">
        Failures by cause <span class="dim">{sum > 0 && count(sum)}</span>
      </h2>
      {causes.length === 0 && <p class="dim">No task failed.</p>}
      <ul class="causes">
        {causes.slice(0, isAll ? undefined : SHOWN).map((cause) => (
          <CauseRow
            key={cause.key}
            cause={cause}
            most={most}
            share={cause.count / sum}
            isChosen={filter.cause === cause.key}
          />
        ))}
      </ul>
      {causes.length > SHOWN && (
        <p>
          <button type="button" onClick={() => setAll(!isAll)}>
            {isAll ? `Only the first ${SHOWN}` : `All ${count(causes.length)} causes`}
          </button>
        </p>
      )}
    </section>
  )
}

interface RowProps {
  readonly cause: CountedCause
  readonly most: number
  readonly share: number
  readonly isChosen: boolean
}

function CauseRow({ cause, most, share, isChosen }: RowProps) {
  const text = useRef<HTMLSpanElement>(null)
  const [isOpen, setOpen] = useState(false)
  const isLong = useIsCut(text, isOpen)
  return (
    <li>
      <button
        type="button"
        class="causes-row"
        aria-pressed={isChosen}
        onClick={() => setQuery({ cause: isChosen ? undefined : String(cause.key) })}
      >
        <span class="causes-count number">{count(cause.count)}</span>
        <span class={isOpen ? 'causes-text' : 'causes-text causes-folded'} ref={text}>
          <span class="mono causes-code">
            <SafeText text={cause.code} />
          </span>{' '}
          <SafeText text={cause.message} />
        </span>
        <span class="causes-bar" aria-hidden="true">
          <span style={{ width: `${(100 * cause.count) / most}%` }} />
        </span>
        <span class="hidden-text">{percent(share)} of failures</span>
      </button>
      {/* Not inside the button above: buttons must not be nested. */}
      {isLong && (
        <div class="causes-fold">
          <button type="button" class="small-button" aria-expanded={isOpen} onClick={() => setOpen(!isOpen)}>
            {isOpen ? 'Show less' : 'Show more'}
            <span class="hidden-text"> of {visible(cause.code)}</span>
          </button>
        </div>
      )}
    </li>
  )
}

/** Whether the text did not fit when it was last folded. */
function useIsCut(text: RefObject<HTMLElement | null>, isOpen: boolean): boolean {
  const [isCut, setCut] = useState(false)
  useLayoutEffect(() => {
    if (isOpen) return
    const element = text.current!
    const observer = new ResizeObserver(() => setCut(element.scrollHeight > element.clientHeight + 1))
    observer.observe(element)
    return () => observer.disconnect()
  }, [isOpen])
  return isCut
}

type CountedCause = ReturnType<typeof countCauses>[number]

function countCauses(table: TaskTable, withSubTasks: boolean) {
  const counts = new Map<number, number>()
  const [cause, parent] = [table.column('cause'), table.column('parent')]
  for (let row = 0; row < table.count; row++) {
    if (Number.isNaN(cause[row]) || (!withSubTasks && parent[row] !== 0)) continue
    counts.set(cause[row]!, (counts.get(cause[row]!) ?? 0) + 1)
  }
  return [...counts]
    .map(([key, count]) => ({ code: '', message: '', ...table.causes.get(key), key, count }))
    .sort((a, b) => b.count - a.count)
}
