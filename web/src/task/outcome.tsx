import type { AttemptDetails, TaskDetails } from '../../../src/view/api.ts'
import { visible } from '../parts/safe-text.tsx'
import type { ValueAt } from '../source/source.ts'
import { counted, duration, figure } from '../text/quantities.ts'
import { Clamp } from './clamp.tsx'
import { ContentView } from './content-view.tsx'
import { CopyButton } from './copy-button.tsx'
import { ErrorView } from './error-view.tsx'
import { Labelled } from './labelled.tsx'
import { TextBlock } from './text-block.tsx'
import { useWhole, WholeFrame } from './whole.tsx'

/** The outcome of an attempt: its answer or its error, and its grade. */
export function Outcome({ details, attempt }: { readonly details: TaskDetails; readonly attempt: AttemptDetails }) {
  const { grade } = details
  const isGraded = attempt.role === 'final' && grade !== undefined
  return (
    <>
      <section
        class={`panel stack ${attempt.error === undefined ? '' : 'outcome-wide'}`}
        aria-labelledby="outcome-title"
      >
        <Result details={details} attempt={attempt} />
      </section>
      {isGraded && <GradeView details={details} grade={grade} />}
    </>
  )
}

function Result({ details, attempt }: { readonly details: TaskDetails; readonly attempt: AttemptDetails }) {
  const at = { run: details.runId, task: details.id, attempt: details.attempts.indexOf(attempt) }
  if (attempt.error !== undefined) return <Failure json={attempt.error} at={{ ...at, of: 'error' }} />
  if (attempt.state === 'success') return <Answer json={attempt.answer} at={{ ...at, of: 'answer' }} />
  return (
    <>
      <h2 id="outcome-title">Answer</h2>
      <p class="dim">
        {attempt.state === 'running'
          ? `The task has been running for ${duration(Math.max(0, Date.now() - attempt.startedAt))}.`
          : 'This attempt was interrupted: its worker or its session ended. It has no answer and did not count.'}
      </p>
    </>
  )
}

interface PartProps {
  readonly json: unknown
  readonly at: ValueAt
}

function Failure({ json, at }: PartProps) {
  const whole = useWhole(json, at)
  return (
    <>
      <h2 id="outcome-title" class="state-failed">
        Error
      </h2>
      <WholeFrame whole={whole} what="the error">
        <ErrorView error={whole.value} />
      </WholeFrame>
    </>
  )
}

function Answer({ json, at }: PartProps) {
  const whole = useWhole(json, at)
  const { value } = whole
  return (
    <>
      <div class="row">
        <h2 id="outcome-title">Answer</h2>
        {value !== undefined && (
          <CopyButton text={() => (typeof value === 'string' ? value : JSON.stringify(whole.json, null, 2))} />
        )}
      </div>
      {value === undefined ? (
        <p class="dim">The agent returned nothing.</p>
      ) : value === null ? (
        <code>null</code>
      ) : typeof value === 'string' && value.trim() === '' ? (
        <p>
          <code>{JSON.stringify(value.slice(0, 100))}</code>{' '}
          <span class="dim">
            {value === '' ? 'an empty text' : `${counted(value.length, 'character')} of white space`}
          </span>
        </p>
      ) : (
        <WholeFrame whole={whole} what="the answer">
          <Clamp>
            <ContentView content={value} />
          </Clamp>
        </WholeFrame>
      )}
    </>
  )
}

interface GradeProps {
  readonly details: TaskDetails
  readonly grade: NonNullable<TaskDetails['grade']>
}

function GradeView({ details, grade: json }: GradeProps) {
  const whole = useWhole(json, { run: details.runId, task: details.id, of: 'grade' })
  const grade = whole.value as typeof json
  const parts = Object.entries(grade.parts ?? {})
  return (
    <section class="panel stack outcome-grade" aria-labelledby="grade-title">
      <h2 id="grade-title">
        Grade <span class="dim">by {visible(grade.grader.name)}</span>
      </h2>
      <WholeFrame whole={whole} what="the grade">
        {grade.error ? (
          <div>
            <Clamp>
              <p class="state-failed error-message">
                <span aria-hidden="true">✗ </span>
                {visible(grade.error.message)}
              </p>
            </Clamp>
            <p class="dim mono">{grade.error.code}</p>
          </div>
        ) : (
          <p>
            {grade.reward === null ? 'The reward is unknown' : `Reward ${figure(grade.reward)}`}
            {grade.success === null || grade.success === undefined ? '' : grade.success ? ', solved' : ', not solved'}
          </p>
        )}
        {parts.length > 0 && (
          <table class="plain">
            <thead>
              <tr>
                <th>part</th>
                <th class="number">value</th>
                <th class="number">weight</th>
              </tr>
            </thead>
            <tbody>
              {parts.map(([name, { value, weight }]) => (
                <tr>
                  <td>{visible(name)}</td>
                  <td class="number">{figure(value)}</td>
                  <td class="number">{figure(weight)}</td>
                </tr>
              ))}
            </tbody>
          </table>
        )}
        {grade.feedback !== undefined && (
          <Labelled label="feedback">
            <Clamp>
              <TextBlock text={grade.feedback} />
            </Clamp>
          </Labelled>
        )}
      </WholeFrame>
    </section>
  )
}
