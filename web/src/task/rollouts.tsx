import { useState } from 'preact/hooks'
import type { RolloutEntry, TaskDetails } from '../../../src/view/api.ts'
import { State } from '../parts/state.tsx'
import { setQuery, taskHref } from '../route.ts'
import { counted, duration, figure } from '../text/quantities.ts'
import { RolloutColumn } from './rollout-column.tsx'
import './rollouts.css'

const MOST_COLUMNS = 4
const SOME = 16

interface Props {
  readonly details: TaskDetails
  /** The numbers of the rollouts to show side by side: `1,3`. */
  readonly beside: string | null
}

/** All rollouts of the task with their results, and two to four of them side by side. */
export function Rollouts({ details, beside }: Props) {
  const { rollouts, id, runId } = details
  const [all, setAll] = useState(rollouts.length <= SOME)
  const own = rollouts.find((one) => one.id === id)
  const wanted = new Set((beside ?? '').split(',').map(Number))
  const chosen = rollouts.filter(({ rollout }) => wanted.has(rollout)).slice(0, MOST_COLUMNS)
  const choose = (list: readonly RolloutEntry[]) =>
    setQuery({ beside: list.length === 0 ? undefined : list.map(({ rollout }) => rollout).join(',') })
  const isChosen = (one: RolloutEntry) => chosen.includes(one)
  const shown = all ? rollouts : rollouts.slice(0, SOME)
  return (
    <section class="panel stack" aria-labelledby="rollouts-title">
      <div class="row spread">
        <h2 id="rollouts-title">
          {counted(rollouts.length, 'rollout')} <span class="dim">{summary(rollouts)}</span>
        </h2>
        {chosen.length > 0 && (
          <button type="button" class="small-button" onClick={() => choose([])}>
            Close the comparison
          </button>
        )}
      </div>
      <p class="dim rollouts-hint">Select two to four to read them side by side.</p>
      <ul class="rollouts">
        {shown.map((one) => (
          <li key={one.id} class={one === own ? 'rollout rollout-own' : 'rollout'}>
            <label>
              <input
                type="checkbox"
                checked={isChosen(one)}
                disabled={!isChosen(one) && chosen.length >= MOST_COLUMNS}
                onChange={() => choose(isChosen(one) ? chosen.filter((other) => other !== one) : [...chosen, one])}
              />
              <span class="hidden-text">Compare rollout {one.rollout}</span>
            </label>
            <a href={taskHref(runId, one.id)} {...(one === own && { 'aria-current': 'page' as const })}>
              {one.rollout}
            </a>
            <State state={one.state} />
            <span class="number">{solvedText(one)}</span>
            <span class="number dim">{one.runMs === null ? '' : duration(one.runMs)}</span>
          </li>
        ))}
      </ul>
      {!all && (
        <button type="button" class="small-button" onClick={() => setAll(true)}>
          {rollouts.length - SOME} more
        </button>
      )}
      {chosen.length >= 2 && (
        <div class="rollout-columns" style={{ '--columns': String(chosen.length) }}>
          {chosen.map((one) => (
            <RolloutColumn key={one.id} run={runId} entry={one} />
          ))}
        </div>
      )}
    </section>
  )
}

export function solvedText({ reward, solved }: RolloutEntry): string {
  const words = [reward === null ? '' : figure(reward), solved === null ? '' : solved ? '✓ solved' : '✗ not solved']
  return words.filter(Boolean).join(' ')
}

/** `3 of 8 solved, mean reward 0.4` */
function summary(rollouts: readonly RolloutEntry[]): string {
  const graded = rollouts.filter(({ solved }) => solved !== null)
  const rewards = rollouts.flatMap(({ reward }) => (reward === null ? [] : [reward]))
  const mean = rewards.reduce((sum, one) => sum + one, 0) / rewards.length
  return [
    graded.length === 0 ? '' : `${graded.filter(({ solved }) => solved).length} of ${graded.length} solved`,
    rewards.length === 0 ? '' : `mean reward ${figure(mean)}`,
  ]
    .filter(Boolean)
    .join(', ')
}
