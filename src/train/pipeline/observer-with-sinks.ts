import type { OpenSinks } from '../sinks/open-sinks.ts'
import type { TrainingObserver } from './observer.ts'
import type { EvalRow, UpdateRow } from './training-record.ts'

/** An observer that also writes to the sinks. The step is the number of updates so far. */
export function withSinks(observer: TrainingObserver, sinks: OpenSinks, updatesBefore: number): TrainingObserver {
  let updates = updatesBefore
  return {
    ...observer,
    update(row) {
      updates = row.number + 1
      writeUpdate(sinks, row)
      observer.update(row)
    },
    evaluation(row) {
      writeEvaluation(sinks, row, updates)
      observer.evaluation(row)
    },
  }
}

/** Writes the figures of an update. After a crash, an update may be written again, with the same values. */
export function writeUpdate(sinks: OpenSinks, { number, report, collectMs, trainMs }: UpdateRow): void {
  const { version, reward, successRate, length, skippedGroups, dropped, metrics, alarms } = report
  const step = number + 1
  const now = Date.now()
  const figures = { reward, successRate, length, version, skippedGroups, dropped, collectMs, trainMs, ...metrics }
  sinks.scalars(step, known(figures), now)
  for (const alarm of alarms) sinks.text(step, 'alarm', alarm, now)
}

function writeEvaluation(sinks: OpenSinks, { split, version, summary }: EvalRow, updates: number): void {
  // The first version is evaluated again for the test, to compare it with the best one.
  const step = version === 0 ? 0 : updates
  const { success, reward } = summary
  const figures = Object.entries({ success, reward }).flatMap(([name, figure]) =>
    figure
      ? (['value', 'low', 'high'] as const).map((part) => [
          `${split}/${name}${part === 'value' ? '' : ` ${part}`}`,
          figure[part],
        ])
      : [],
  )
  sinks.scalars(step, Object.fromEntries(figures), Date.now())
}

/** Drops figures that are unknown: for example, an episode of CartPole has no success. */
const known = (figures: Readonly<Record<string, number | null>>) =>
  Object.fromEntries(Object.entries(figures).filter((entry): entry is [string, number] => entry[1] !== null))
