import { useMemo } from 'preact/hooks'
import type { RolloutEntry, TaskDetails } from '../../../src/view/api.ts'
import { Loading } from '../parts/loading.tsx'
import { Problem } from '../parts/problem.tsx'
import { SafeText, visible } from '../parts/safe-text.tsx'
import { useSource } from '../parts/source-context.ts'
import { State } from '../parts/state.tsx'
import { useLoaded } from '../parts/use-loaded.ts'
import { taskHref } from '../route.ts'
import { count, dollars, duration } from '../text/quantities.ts'
import { chosenAttempt, type NamedAttempt, namedAttempts } from './attempts.ts'
import { ContentView } from './content-view.tsx'
import { ErrorView } from './error-view.tsx'
import { solvedText } from './rollouts.tsx'
import { shortLines } from './short-lines.ts'
import { readShown } from './shown-value.ts'
import { storyOf } from './story.ts'
import { useSteps } from './use-steps.ts'

const MOST_LINES = 200

/** One rollout beside others: its result, its answer, and a short form of its conversation. */
export function RolloutColumn({ run, entry }: { readonly run: string; readonly entry: RolloutEntry }) {
  const source = useSource()
  const { value, error } = useLoaded(() => source.task(run, entry.id), [run, entry.id])
  const attempt = value && chosenAttempt(namedAttempts(value.attempts), null)
  return (
    <article class="rollout-column">
      <h3>
        <a href={taskHref(run, entry.id)}>
          <SafeText text={entry.id} />
        </a>
      </h3>
      <div class="row">
        <State state={entry.state} />
        <strong>{solvedText(entry)}</strong>
      </div>
      {error !== undefined && <Problem error={error} />}
      {value === undefined && error === undefined && <Loading what="the rollout" />}
      {value && attempt && <Column run={run} details={value} attempt={attempt} />}
    </article>
  )
}

function Column({
  run,
  details,
  attempt,
}: {
  readonly run: string
  readonly details: TaskDetails
  readonly attempt: NamedAttempt
}) {
  const { start, usage, runMs, answer, error } = attempt.details
  const steps = useSteps(run, details.id, start, false)
  const lines = useMemo(() => {
    const story = storyOf(steps.list, [])
    return story.items.flatMap((item) => shortLines(item, story.talk))
  }, [steps.list])
  const facts = [
    runMs === undefined ? '' : duration(runMs),
    usage.outputTokens === undefined ? '' : `${count(usage.outputTokens)} tokens out`,
    usage.costUsd === undefined ? '' : dollars(usage.costUsd),
  ]
  return (
    <>
      <p class="dim">{facts.filter(Boolean).join(' · ')}</p>
      <div class="rollout-answer">
        <div class="call-label">{error === undefined ? 'answer' : 'error'}</div>
        {error === undefined ? (
          <ContentView content={readShown(answer)} />
        ) : (
          <ErrorView error={readShown(error)} level={1} />
        )}
      </div>
      <ol class="rollout-lines">
        {lines.slice(0, MOST_LINES).map(({ step, who, text, isFailure }) => (
          <li>
            <a href={taskHref(run, details.id, { attempt: attempt.name, step: String(step) })} class="number">
              {step}
            </a>
            <span class={`rollout-who ${isFailure ? 'state-failed' : ''}`}>
              {isFailure ? '✗ ' : ''}
              {visible(who)}
            </span>{' '}
            {visible(text)}
          </li>
        ))}
      </ol>
      {lines.length > MOST_LINES && (
        <p class="dim">{count(lines.length - MOST_LINES)} more: open the task to read them.</p>
      )}
      {steps.error !== undefined && <Problem error={steps.error} />}
      {!steps.isLoading && lines.length === 0 && <p class="dim">No steps were recorded.</p>}
    </>
  )
}
