import { useMemo } from 'preact/hooks'
import { STATES } from '../../../src/view/api.ts'
import { SafeText, visible } from '../parts/safe-text.tsx'
import { State } from '../parts/state.tsx'
import { route, setQuery } from '../route.ts'
import { count, shortCount } from '../text/quantities.ts'
import { SHOWN } from './distributions.tsx'
import { stateQuery } from './filter-query.ts'
import { RANGE_COLUMNS, type Range, type TaskFilter } from './task-filter.ts'
import type { Names } from './task-sort.ts'
import type { TaskTable } from './task-table.ts'

const KEYS = ['state', 'agent', 'cause', 'version', 'worker', 'solved', 'id', 'text', ...RANGE_COLUMNS]

interface Props {
  readonly table: TaskTable
  readonly changes: number
  readonly names: Names
  readonly filter: TaskFilter
}

/** The filters of the table. Each control changes the address of the page. */
export function TaskFilters({ table, changes, names, filter }: Props) {
  const { states, versions } = useMemo(() => tallies(table, filter.withSubTasks), [table, changes, filter.withSubTasks])
  const { query } = route.value
  const toggle = (state: number) => {
    const { states } = filter
    const next = states.includes(state) ? states.filter((one) => one !== state) : [...states, state]
    setQuery({ state: stateQuery(next) })
  }
  return (
    <div class="tasks-filters">
      <fieldset class="tasks-states" aria-label="States">
        {STATES.map((name, state) =>
          states[state] === 0 && !filter.states.includes(state) ? null : (
            <button key={name} type="button" aria-pressed={filter.states.includes(state)} onClick={() => toggle(state)}>
              <State state={name} /> <span class="number">{shortCount(states[state]!)}</span>
            </button>
          ),
        )}
      </fieldset>
      <input
        type="search"
        class="tasks-id-filter"
        placeholder="Task id contains …"
        aria-label="Task id contains"
        data-shortcut="/"
        value={query.get('id') ?? ''}
        onInput={(event) => setQuery({ id: event.currentTarget.value })}
      />
      {names.agents.size > 1 && (
        <select
          aria-label="Agent"
          value={String(filter.agent ?? '')}
          onChange={(event) => setQuery({ agent: event.currentTarget.value })}
        >
          <option value="">All agents</option>
          {[...names.agents].map(([key, name]) => (
            <option key={key} value={String(key)}>
              {visible(name.slice(0, 80))}
            </option>
          ))}
        </select>
      )}
      {table.has('solved') && (
        <select
          aria-label="Solved"
          value={filter.solved ?? ''}
          onChange={(event) => setQuery({ solved: event.currentTarget.value })}
        >
          <option value="">Solved or not</option>
          <option value="yes">Solved</option>
          <option value="no">Not solved</option>
          <option value="none">Not graded</option>
        </select>
      )}
      {versions.length > 0 && (
        <select
          aria-label="Version"
          value={String(filter.version ?? '')}
          onChange={(event) => setQuery({ version: event.currentTarget.value })}
        >
          <option value="">All versions</option>
          {versions.map((version) => (
            <option key={version} value={String(version)}>
              Version {version}
            </option>
          ))}
        </select>
      )}
      {table.subTasks > 0 && (
        <label class="tasks-check">
          <input
            type="checkbox"
            checked={filter.withSubTasks}
            onChange={(event) => setQuery({ sub: event.currentTarget.checked ? '1' : undefined })}
          />
          {count(table.subTasks)} sub-tasks
        </label>
      )}
      <Chips {...{ table, names, filter }} />
      {KEYS.some((key) => query.has(key)) && (
        <button type="button" onClick={() => setQuery(Object.fromEntries(KEYS.map((key) => [key, undefined])))}>
          Show all
        </button>
      )}
    </div>
  )
}

/** Filters that other parts of the page set. A click removes one. */
function Chips({ table, names, filter }: Omit<Props, 'changes'>) {
  const chips: { readonly key: string; readonly text: string }[] = []
  if (filter.cause !== undefined) {
    const cause = table.causes.get(filter.cause)
    chips.push({ key: 'cause', text: cause ? `${cause.code}: ${cause.message}` : `cause ${filter.cause}` })
  }
  if (filter.worker !== undefined)
    chips.push({ key: 'worker', text: `worker ${names.workers.get(filter.worker) ?? filter.worker}` })
  for (const name of RANGE_COLUMNS) {
    const range = filter.ranges[name]
    if (range) chips.push({ key: name, text: `${SHOWN[name].name} ${rangeText(range, SHOWN[name].show)}` })
  }
  return (
    <>
      {chips.map(({ key, text }) => (
        <button
          key={key}
          type="button"
          class="tasks-chip"
          aria-label={`Remove the filter ${text}`}
          title={text}
          onClick={() => setQuery({ [key]: undefined })}
        >
          <span class="cut">
            <SafeText text={text} />
          </span>
          <span aria-hidden="true">×</span>
        </button>
      ))}
    </>
  )
}

function rangeText({ low, high }: Range, show: (value: number) => string): string {
  if (low === -Infinity) return `below ${show(high)}`
  return high === Infinity ? `from ${show(low)}` : `from ${show(low)} to ${show(high)}`
}

const MAX_VERSIONS = 1000

function tallies(table: TaskTable, withSubTasks: boolean) {
  const states = STATES.map(() => 0)
  const versions = new Set<number>()
  const [state, parent, version] = [table.column('state'), table.column('parent'), table.column('version')]
  const hasVersions = table.has('version')
  for (let row = 0; row < table.count; row++) {
    if (!withSubTasks && parent[row] !== 0) continue
    states[state[row]!]!++
    if (hasVersions && !Number.isNaN(version[row]) && versions.size < MAX_VERSIONS) versions.add(version[row]!)
  }
  return { states, versions: [...versions].sort((a, b) => a - b) }
}
