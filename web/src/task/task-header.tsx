import type { ComponentChildren } from 'preact'
import { useState } from 'preact/hooks'
import type { AttemptDetails, TaskDetails } from '../../../src/view/api.ts'
import { Fact } from '../parts/fact.tsx'
import { SafeText } from '../parts/safe-text.tsx'
import { State } from '../parts/state.tsx'
import { setQuery, taskHref, trainingHref } from '../route.ts'
import { count, counted, dateTime, dollars, duration, figure } from '../text/quantities.ts'
import type { NamedAttempt } from './attempts.ts'
import { episodeText } from './episode-text.ts'
import { NeighbourButtons } from './neighbours.tsx'
import { readShown } from './shown-value.ts'
import './task-header.css'

interface Props {
  readonly details: TaskDetails
  readonly training: string | undefined
  readonly attempts: readonly NamedAttempt[]
  readonly attempt: NamedAttempt | undefined
}

/** The facts about the task: its outcome, timing and related tasks. */
export function TaskHeader({ details, training, attempts, attempt }: Props) {
  return (
    <header class="panel stack task-header">
      <div class="row">
        <h1 class="mono task-id">
          <SafeText text={details.id} />
        </h1>
        <State state={details.state} />
        <Reward details={details} />
        <NeighbourButtons run={details.runId} task={details.id} />
      </div>
      <dl class="facts">
        <Fact name="agent" text={details.agentName} />
        {attempt && <AttemptFacts attempt={attempt.details} training={training} />}
        <Relations details={details} />
      </dl>
      {attempts.length > 1 && attempt && <AttemptPicker attempts={attempts} chosen={attempt} />}
      {attempt?.details.role === 'superseded' && (
        <p class="notice">Another attempt counts. This one came too late, or a resumed run tried the task again.</p>
      )}
    </header>
  )
}

function Reward({ details: { grade } }: { readonly details: TaskDetails }) {
  if (!grade) return null
  const word = grade.success === null ? '' : grade.success ? 'solved' : 'not solved'
  const sign = grade.success === null ? '' : grade.success ? '✓ ' : '✗ '
  return (
    <>
      {word !== '' && (
        <span class={`task-solved ${grade.success ? 'state-success' : 'state-failed'}`}>
          <span aria-hidden="true">{sign}</span>
          {word}
        </span>
      )}
      {typeof grade.reward === 'number' && (
        <span>
          reward <strong>{figure(grade.reward)}</strong>
        </span>
      )}
      {grade.error && <span class="state-failed">not graded: {grade.error.code}</span>}
    </>
  )
}

function AttemptFacts({
  attempt,
  training,
}: {
  readonly attempt: AttemptDetails
  readonly training: string | undefined
}) {
  const { runMs, queuedMs, waitedMs, usage, worker, startedAt, version, episode, digest } = attempt
  return (
    <>
      {runMs !== undefined && <Fact name="run time">{duration(runMs)}</Fact>}
      {queuedMs !== undefined && <Fact name="queued">{duration(queuedMs)}</Fact>}
      {waitedMs !== undefined && waitedMs > 0 && (
        <Fact name="waited" hint="How long model calls waited for rate limits">
          {duration(waitedMs)}
        </Fact>
      )}
      {(usage.inputTokens !== undefined || usage.outputTokens !== undefined) && (
        <Fact name="tokens">
          {count(usage.inputTokens ?? 0)} in
          {usage.cachedTokens ? ` (${count(usage.cachedTokens)} cached)` : ''}, {count(usage.outputTokens ?? 0)} out
        </Fact>
      )}
      {usage.costUsd !== undefined && <Fact name="cost">{dollars(usage.costUsd)}</Fact>}
      {episode && <Fact name="episode">{episodeText(readShown(episode) as typeof episode)}</Fact>}
      {worker && (
        <Fact name="worker">
          <SafeText text={worker.id} />
          <span class="dim">
            {' '}
            <SafeText text={worker.host} />
            {worker.pid === undefined ? '' : ` pid ${worker.pid}`}
          </span>
        </Fact>
      )}
      <Fact name="started">{dateTime(startedAt)}</Fact>
      {version !== undefined && (
        <Fact name="policy">
          {training === undefined ? `version ${version}` : <a href={trainingHref(training)}>version {version}</a>}
        </Fact>
      )}
      {digest !== undefined && (
        <Fact name="digest" hint={`${digest}: equal digests mean equal experience`}>
          <span class="mono">{digest.slice(0, 10)}</span>
        </Fact>
      )}
    </>
  )
}

function Relations({ details }: { readonly details: TaskDetails }) {
  const { runId, parentId, dependsOn = [], subTasks } = details
  const link = (id: string) => (
    <a key={id} class="mono" href={taskHref(runId, id)}>
      <SafeText text={id} />
    </a>
  )
  return (
    <>
      {parentId !== undefined && <Fact name="sub-task of">{link(parentId)}</Fact>}
      {dependsOn.length > 0 && (
        <Fact name="depends on">
          <SomeLinks items={dependsOn} draw={link} />
        </Fact>
      )}
      {subTasks.length > 0 && (
        <Fact name={counted(subTasks.length, 'sub-task')}>
          <SomeLinks
            items={subTasks}
            draw={({ id, state }) => (
              <span key={id} class="task-link">
                <State state={state} /> {link(id)}
              </span>
            )}
          />
        </Fact>
      )}
    </>
  )
}

/** The number of links that are shown at first. */
const SOME = 12

interface SomeLinksProps<Item> {
  readonly items: readonly Item[]
  readonly draw: (item: Item) => ComponentChildren
}

function SomeLinks<Item>({ items, draw }: SomeLinksProps<Item>) {
  const [most, setMost] = useState(SOME)
  return (
    <span class="task-links">
      {items.slice(0, most).map(draw)}
      {items.length > most && (
        <button type="button" class="small-button" onClick={() => setMost(20 * most)}>
          {count(items.length - most)} more
        </button>
      )}
    </span>
  )
}

const ROLE_TEXTS: Readonly<Record<AttemptDetails['role'], string>> = {
  final: 'final',
  retried: 'tried again',
  superseded: 'superseded',
  unfinished: 'has not ended',
}

/** Whether the attempt ended with its worker or its session, so that it did not count. */
const isInterrupted = ({ role, state }: AttemptDetails) => role === 'unfinished' && state !== 'running'

function AttemptPicker({
  attempts,
  chosen,
}: {
  readonly attempts: readonly NamedAttempt[]
  readonly chosen: NamedAttempt
}) {
  return (
    <section class="row attempts" aria-label="Attempts">
      {attempts.map(({ name, details }) => (
        <button
          key={name}
          type="button"
          aria-pressed={name === chosen.name}
          onClick={() => setQuery({ attempt: name, step: undefined })}
        >
          attempt {details.attempt}{' '}
          {isInterrupted(details) ? <State state="interrupted" /> : <State state={details.state} />}{' '}
          <span class="dim">
            {isInterrupted(details) ? `on ${details.worker?.id ?? 'a worker'}` : ROLE_TEXTS[details.role]}
            {details.session > 1 ? `, session ${details.session}` : ''}
            {details.runMs === undefined ? '' : `, ${duration(details.runMs)}`}
          </span>
        </button>
      ))}
    </section>
  )
}
