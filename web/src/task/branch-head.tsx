import { useState } from 'preact/hooks'
import type { Branch, BranchReason, OpenedBranch } from '../../../src/trajectory/branches.ts'
import type { TaskDetails } from '../../../src/view/api.ts'
import { SafeText } from '../parts/safe-text.tsx'
import { State } from '../parts/state.tsx'
import { taskHref } from '../route.ts'
import { count } from '../text/quantities.ts'
import { episodeText } from './episode-text.ts'

const REASONS: Readonly<Record<BranchReason, string>> = {
  parallel: 'in parallel',
  serial: 'in series',
  subtask: 'sub-task',
  compaction: 'continues with a shorter conversation',
  drift: 'continues with other tokens',
}

/** The head of a branch: its agent, and why it was opened. */
export function BranchHead({ run, branch }: { readonly run: string; readonly branch: Branch | OpenedBranch }) {
  const { id, agent, parent } = branch
  const { task, end } = branch as Branch
  return (
    <div class="branch-head">
      <span class="branch-sign" aria-hidden="true">
        ↳
      </span>
      <strong>
        <SafeText text={agent} />
      </strong>
      <span class="dim">
        {parent && (REASONS[parent.why] ?? String(parent.why))} · branch {id}
      </span>
      {task !== undefined && (
        <a class="mono" href={taskHref(run, task)}>
          <SafeText text={task} />
        </a>
      )}
      {end && <span>{episodeText(end)}</span>}
    </div>
  )
}

/** The number of sub-tasks that are listed at first. */
const SOME = 20

/** Links to sub-tasks, whose steps are on their own pages. */
export function SubTaskRows({ details: { runId, subTasks } }: { readonly details: TaskDetails }) {
  const [most, setMost] = useState(SOME)
  if (subTasks.length === 0) return null
  return (
    <div>
      {subTasks.slice(0, most).map(({ id, state }) => (
        <div key={id} class="step-row">
          <span class="lane" />
          <div class="branch-head">
            <span class="branch-sign" aria-hidden="true">
              ↳
            </span>
            <span class="dim">sub-task</span>
            <a class="mono" href={taskHref(runId, id)}>
              <SafeText text={id} />
            </a>
            <State state={state} />
          </div>
        </div>
      ))}
      {subTasks.length > most && (
        <button type="button" class="small-button" onClick={() => setMost(10 * most)}>
          {count(subTasks.length - most)} more sub-tasks
        </button>
      )}
    </div>
  )
}
