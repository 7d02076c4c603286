import { describeEvaluation } from '../../../src/cli/render/evaluation-figures.ts'
import type { TrainingDetails } from '../../../src/view/api.ts'
import { SafeText } from '../parts/safe-text.tsx'
import { runHref } from '../route.ts'
import { count, counted, dateTime } from '../text/quantities.ts'
import { firstUpdateOf } from './evaluation-points.ts'
import { alarmsOf, type FigureKind } from './update-figures.ts'

const MOST_CHARS = 2000

/** The facts about an update, with links to its episodes. */
export function UpdateCard({
  details,
  number,
  numbers,
  kinds,
  onPick,
}: {
  readonly details: TrainingDetails
  readonly number: number
  /** The figures of this update. */
  readonly numbers: ReadonlyMap<string, number> | undefined
  readonly kinds: readonly FigureKind[]
  /** Undefined: closes the card. */
  readonly onPick: (update: number | undefined) => void
}) {
  const update = details.updates.find((one) => one.number === number)
  const plan = details.plans.find((one) => one.number === number)
  const run = update?.run ?? plan?.run
  const version = update?.versionIn ?? plan?.version
  const firstUpdate = firstUpdateOf(details)
  const evaluations = details.evaluations.filter((row) => firstUpdate(row.version) === number)
  const has = (other: number) => details.updates.some((one) => one.number === other)
  return (
    <section class="panel stack training-card" aria-labelledby="card-title">
      <div class="row spread">
        <h2 id="card-title">Update {count(number)}</h2>
        <div class="row training-steps">
          <button
            type="button"
            aria-label="Previous update"
            disabled={!has(number - 1)}
            onClick={() => onPick(number - 1)}
          >
            ←
          </button>
          <button type="button" aria-label="Next update" disabled={!has(number + 1)} onClick={() => onPick(number + 1)}>
            →
          </button>
          <button type="button" aria-label="Close" onClick={() => onPick(undefined)}>
            ×
          </button>
        </div>
      </div>
      {update ? (
        <p>
          Epoch {count(update.epoch)}. Version {count(update.versionIn)} acted
          {plan && ` on ${counted(plan.tasks, 'task')}`}; the learner learned from {counted(update.members, 'episode')}
          {update.versionOut === null
            ? ', but nothing could be learned, so there is no new version'
            : ` and made version ${count(update.versionOut)}`}
          . <span class="dim">{dateTime(update.at)}</span>
        </p>
      ) : plan ? (
        <p>
          Episodes of {counted(plan.tasks, 'task')} are being collected with version {count(plan.version)}.
        </p>
      ) : (
        <p class="dim">After the last update. These versions were evaluated:</p>
      )}
      {run !== undefined && (
        <p class="row">
          <a href={runHref(run)}>Episodes of this update</a>
          {version !== undefined && (
            <a href={runHref(run, { version: String(version) })}>of version {count(version)}</a>
          )}
        </p>
      )}
      {evaluations.map((row) => (
        <p key={row.split}>
          Version {count(row.version)}, <a href={runHref(row.run)}>{row.split}</a>: {describeEvaluation(row.summary)},{' '}
          {counted(row.tasks, 'task')} × {count(row.rollouts)}
        </p>
      ))}
      {update &&
        alarmsOf(update).map((alarm) => (
          <p key={alarm} class="training-alarm">
            <b>Alarm:</b> <SafeText text={alarm.slice(0, MOST_CHARS)} />
          </p>
        ))}
      {numbers && (
        <dl class="training-numbers">
          {kinds.map(({ key, name, about, format }) => {
            const value = numbers.get(key)
            return value === undefined ? null : (
              <div key={key}>
                <dt title={about}>
                  <SafeText text={name} />
                </dt>
                <dd class="number">{format(value)}</dd>
              </div>
            )
          })}
        </dl>
      )}
    </section>
  )
}
