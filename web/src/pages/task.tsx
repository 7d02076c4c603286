import { useCallback, useEffect, useMemo, useRef, useState } from 'preact/hooks'
import type { Branch } from '../../../src/trajectory/branches.ts'
import type { TaskChunk, TaskDetails } from '../../../src/view/api.ts'
import { Empty } from '../parts/empty.tsx'
import { Loading } from '../parts/loading.tsx'
import { Problem } from '../parts/problem.tsx'
import { useSource } from '../parts/source-context.ts'
import { useLoaded } from '../parts/use-loaded.ts'
import { route, runHref, setQuery, taskHref } from '../route.ts'
import { chosenAttempt, type NamedAttempt, namedAttempts } from '../task/attempts.ts'
import { SubTaskRows } from '../task/branch-head.tsx'
import { Conversation } from '../task/conversation.tsx'
import { CopyButton } from '../task/copy-button.tsx'
import { Given } from '../task/given.tsx'
import { Guard } from '../task/guard.tsx'
import { useKeys } from '../task/keys.tsx'
import { Logs } from '../task/logs.tsx'
import { Outcome } from '../task/outcome.tsx'
import { Rollouts } from '../task/rollouts.tsx'
import { useScrollToStep } from '../task/scroll-to-step.ts'
import { readShown } from '../task/shown-value.ts'
import { type Story, storyOf } from '../task/story.ts'
import { TaskHeader } from '../task/task-header.tsx'
import { type Live, useLiveRun } from '../task/use-live-run.ts'
import { type Steps, useSteps } from '../task/use-steps.ts'
import { ValueView } from '../task/value-view.tsx'
import { Waterfall } from '../task/waterfall.tsx'
import { count, counted } from '../text/quantities.ts'
import './task.css'

/** A task: its input, its steps, and its outcome. */
export function TaskPage({ run, task }: { readonly run: string; readonly task: string }) {
  const source = useSource()
  // An error while the task is updated must not remove what is already shown.
  const last = useRef<TaskDetails | undefined>(undefined)
  const live = useLiveRun(run, ({ tasks }) => tasks !== undefined && concerns(tasks, last.current))
  const { value: details, error } = useLoaded(() => source.task(run, task), [run, task, live.version])
  const { value: training } = useLoaded(() => source.run(run).then((one) => one.training), [run])
  if (details) last.current = details
  if (last.current === undefined)
    return error === undefined ? <Loading what="the task" /> : <NoTask run={run} error={error} />
  return <Opened details={last.current} training={training} live={live} />
}

/** Whether rows belong to the task, its sub-tasks or its group. */
function concerns({ id, parent }: TaskChunk, details: TaskDetails | undefined): boolean {
  if (details === undefined) return true
  const ids = new Set([details.id, ...details.rollouts.map((one) => one.id)])
  return id.some((one) => ids.has(one)) || parent.includes(details.task)
}

const NoTask = ({ run, error }: { readonly run: string; readonly error: unknown }) => (
  <div class="stack">
    <Problem error={error} />
    <p>
      <a href={runHref(run)}>All tasks of the run</a>
    </p>
  </div>
)

interface OpenedProps {
  readonly details: TaskDetails
  readonly training: string | undefined
  readonly live: Live
}

function Opened({ details, training, live }: OpenedProps) {
  const { query } = route.value
  const attempts = useMemo(() => namedAttempts(details.attempts), [details])
  const attempt = chosenAttempt(attempts, query.get('attempt'))
  return (
    <div class="stack">
      {live.isLost && (
        <p class="notice" role="status">
          The connection to the server is lost; retrying …
        </p>
      )}
      <TaskHeader details={details} training={training} attempts={attempts} attempt={attempt} />
      <div class="task-ends">
        <Guard fallback={<ValueView value={details.input} />}>
          <Given details={details} />
        </Guard>
        {attempt && (
          <Guard key={attempt.name} fallback={<ValueView value={attempt.details} />}>
            <Outcome details={details} attempt={attempt.details} />
          </Guard>
        )}
      </div>
      {details.rollouts.length > 1 && <Rollouts details={details} beside={query.get('beside')} />}
      {attempt ? (
        <AttemptView key={attempt.name} details={details} attempt={attempt} />
      ) : (
        <Empty>The task has not started yet. This page follows it.</Empty>
      )}
      <Raw details={details} />
    </div>
  )
}

interface AttemptProps {
  readonly details: TaskDetails
  readonly attempt: NamedAttempt
}

function AttemptView({ details, attempt }: AttemptProps) {
  const { runId: run, id: task } = details
  const { start, attempt: number, logs, branches, runMs } = attempt.details
  const { report } = useSource()
  const isLive = attempt.details.state === 'running' && report === undefined
  const steps = useSteps(run, task, start, isLive)
  const story = useMemo(() => storyOf(steps.list, readShown(branches) as readonly Branch[]), [steps.list, branches])
  const marked = indexIn(route.value.query.get('step'))
  useScrollToStep(marked, marked !== undefined && story.placeOf.has(marked))
  useLoadUpTo(marked, steps)
  useStepKeys(story, marked)
  const hrefOf = useCallback(
    (index: number) => taskHref(run, task, { attempt: attempt.name, step: String(index) }),
    [run, task, attempt.name],
  )
  return (
    <>
      <div class="task-columns">
        <section aria-labelledby="conversation-title" class="task-conversation">
          <h2 id="conversation-title">
            Trajectory <span class="dim">{steps.list.length > 0 && counted(steps.list.length, 'step')}</span>
          </h2>
          <Conversation run={run} story={story} marked={marked} hrefOf={hrefOf} loadWhole={steps.loadWhole} />
          <SubTaskRows details={details} />
          <StepsEnd steps={steps} attempt={attempt} isLive={isLive} />
        </section>
        {steps.list.length > 1 && (
          <aside class="task-aside">
            <Waterfall steps={steps.list} runMs={runMs ?? 0} marked={marked} hrefOf={hrefOf} />
          </aside>
        )}
      </div>
      {logs.lines.length > 0 && (
        <details class="panel" open={logs.lines.length <= 20}>
          <summary>
            <h2 class="task-fold">
              Log <span class="dim">{counted(logs.lines.length + logs.left, 'line')}</span>
            </h2>
          </summary>
          <Logs run={run} task={task} attempt={number} logs={logs} />
        </details>
      )}
    </>
  )
}

interface StepsEndProps {
  readonly steps: Steps
  readonly attempt: NamedAttempt
  readonly isLive: boolean
}

/** The end of the list of steps. */
function StepsEnd({ steps, attempt: { details }, isLive }: StepsEndProps) {
  const { removedSteps } = details
  const isReport = useSource().report !== undefined
  if (steps.error !== undefined) return <Problem error={steps.error} />
  if (removedSteps !== undefined)
    return <Empty>{counted(removedSteps, 'step')} of this attempt were removed from the store.</Empty>
  if (steps.isLoading) return <Loading what="steps" />
  if (steps.hasMore)
    return (
      <div class="empty">
        <button type="button" onClick={steps.loadMore}>
          {count(steps.list.length)} steps are shown. Load more
        </button>
      </div>
    )
  if (isLive)
    return (
      <p class="dim task-waiting" role="status">
        The task is running. New steps appear here.
      </p>
    )
  if (steps.list.length > 0) return null
  if (isReport && details.start !== null)
    return (
      <Empty>
        The steps of this attempt are not in this report. Open the run with <code>manyworlds view</code> to see them.
      </Empty>
    )
  return (
    <Empty>
      No steps were recorded. Agents record them with <code>ctx.step()</code>, model calls and tools.
    </Empty>
  )
}

/** `j` and `k` move through the steps in the order in which they are shown. */
function useStepKeys({ items, placeOf }: Story, marked: number | undefined): void {
  const step = (by: 1 | -1) => () => {
    let place = marked === undefined ? -1 : (placeOf.get(marked) ?? -1)
    if (place < 0 && by < 0) return
    do place += by
    while (items[place]?.kind === 'branch')
    const item = items[place]
    if (item?.kind === 'step') setQuery({ step: String(item.shown.step.index) })
  }
  useKeys({ j: step(1), k: step(-1) })
}

/** Loads steps up to the one that the address names, which may be far down. */
function useLoadUpTo(index: number | undefined, steps: Steps): void {
  const isMissing = index !== undefined && steps.hasMore && index >= steps.list.length
  useEffect(() => {
    if (isMissing) steps.loadMore()
  }, [isMissing, steps.list.length])
}

function indexIn(text: string | null): number | undefined {
  return text !== null && /^\d{1,7}$/.test(text) ? Number(text) : undefined
}

function Raw({ details }: { readonly details: TaskDetails }) {
  const [isOpen, setOpen] = useState(false)
  return (
    <details class="panel" onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>
        <h2 class="task-fold">Raw JSON</h2>
      </summary>
      {isOpen && (
        <div class="stack">
          <div>
            <CopyButton text={() => JSON.stringify(details, null, 2)} label="Copy JSON" />
          </div>
          <ValueView value={details} />
        </div>
      )}
    </details>
  )
}
