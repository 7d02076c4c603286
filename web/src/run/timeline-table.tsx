import { useMemo, useState } from 'preact/hooks'
import { STATES, type WorkerEntry } from '../../../src/view/api.ts'
import { SafeText } from '../parts/safe-text.tsx'
import { ScrollRegion } from '../parts/scroll-region.tsx'
import { route, setQuery } from '../route.ts'
import { count, duration, percent } from '../text/quantities.ts'
import type { Lane, Stay } from './lanes.ts'
import type { RunData } from './run-data.ts'

const MAX_ROWS = 500

/** The timeline as a table: what each worker did. */
export function TimelineTable({ data, lanes }: { readonly data: RunData; readonly lanes: readonly Lane[] }) {
  const [isOpen, setOpen] = useState(false)
  return (
    <details class="timeline-table" onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>Workers as a table</summary>
      {isOpen && <Rows data={data} lanes={lanes} />}
    </details>
  )
}

function Rows({ data, lanes }: { readonly data: RunData; readonly lanes: readonly Lane[] }) {
  const origin = data.overview.value?.startedAt ?? 0
  const stays = useMemo(() => lanes.flatMap((lane) => staysOf(data, lane)), [lanes])
  const chosen = route.value.query.get('worker')
  const at = (time: number | undefined) => (time === undefined ? '' : duration(Math.max(0, time - origin)))
  return (
    <ScrollRegion class="scroll-x timeline-rows" label="Workers as a table">
      <table class="plain">
        <thead>
          <tr>
            <th>worker</th>
            <th>machine</th>
            <th class="number">session</th>
            <th class="number">attempts</th>
            <th class="number">success</th>
            <th class="number">other ends</th>
            <th class="number" title="The share of the time in which at least one attempt ran">
              busy
            </th>
            <th class="number">joined</th>
            <th>left</th>
          </tr>
        </thead>
        <tbody>
          {stays.slice(0, MAX_ROWS).map(({ worker, lostAt, attempts, success, busy }) => (
            <tr key={worker?.key ?? -1}>
              <td>
                {worker === undefined ? (
                  'no worker'
                ) : (
                  <button
                    type="button"
                    class="timeline-worker"
                    aria-pressed={chosen === String(worker.key)}
                    title="Only tasks of this worker"
                    onClick={() => setQuery({ worker: chosen === String(worker.key) ? undefined : String(worker.key) })}
                  >
                    <SafeText text={worker.id} />
                  </button>
                )}
              </td>
              <td>
                {worker && <SafeText text={`${worker.host}${worker.pid === undefined ? '' : `, pid ${worker.pid}`}`} />}
              </td>
              <td class="number">{worker?.session}</td>
              <td class="number">{count(attempts)}</td>
              <td class="number">{count(success)}</td>
              <td class="number">{count(attempts - success)}</td>
              <td class="number">{percent(busy)}</td>
              <td class="number">{at(worker?.joinedAt)}</td>
              <td>
                {lostAt === undefined ? (
                  at(worker?.leftAt)
                ) : (
                  <span class="state-crashed">
                    lost at {at(lostAt)}
                    {worker?.lost !== undefined && (
                      <>
                        : <SafeText text={worker.lost.slice(0, 300)} />
                      </>
                    )}
                  </span>
                )}
              </td>
            </tr>
          ))}
        </tbody>
      </table>
      {stays.length > MAX_ROWS && <p class="dim">The first {MAX_ROWS} workers.</p>}
    </ScrollRegion>
  )
}

const SUCCESS = STATES.indexOf('success')

/** What each worker process of a lane did. */
function staysOf(data: RunData, lane: Lane) {
  const stays: readonly Partial<Stay>[] = lane.stays.size === 0 ? [{}] : [...lane.stays.values()]
  return stays.map(({ worker, lostAt, places = lane.rows.keys() }) => ({
    ...{ worker, lostAt },
    ...sumOf(data, lane, places, worker),
  }))
}

function sumOf(data: RunData, { rows, start, end }: Lane, places: Iterable<number>, worker: WorkerEntry | undefined) {
  const state = data.attempts.column('state')
  let [attempts, success, busyMs, first, until] = [0, 0, 0, Infinity, -Infinity]
  for (const place of places) {
    attempts++
    if (state[rows[place]!] === SUCCESS) success++
    busyMs += Math.max(0, end[place]! - Math.max(until, start[place]!))
    first = Math.min(first, start[place]!)
    until = Math.max(until, end[place]!)
  }
  const [from, to] = [worker?.joinedAt ?? first, worker?.leftAt ?? until]
  return { attempts, success, busy: to > from ? Math.min(1, busyMs / (to - from)) : 0 }
}
