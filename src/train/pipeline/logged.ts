import type { OpenSinks } from '../sinks/open-sinks.ts'
import type { TrainingObserver } from './observer.ts'
import type { EvalRow, UpdateRow } from './training-record.ts'

/** An observer that also tells the sinks. Steps are numbers of updates, from 1. */
export function logged(observer: TrainingObserver, sinks: OpenSinks, updatesBefore: number): TrainingObserver {
  let updates = updatesBefore
  return {
    ...observer,
    update(row) {
      updates = row.number + 1
      tellUpdate(sinks, row)
      observer.update(row)
    },
    evaluation(row) {
      tellEvaluation(sinks, row, updates)
      observer.evaluation(row)
    },
  }
}

/** The figures of an update. One that was told before a crash may come again, with the same values. */
export function tellUpdate(sinks: OpenSinks, { number, report, collectMs, trainMs }: UpdateRow): void {
  const { version, reward, successRate, length, skippedGroups, dropped, metrics, alarms } = report
  const step = number + 1
  const now = Date.now()
  const figures = { reward, successRate, length, version, skippedGroups, dropped, collectMs, trainMs, ...metrics }
  sinks.scalars(step, known(figures), now)
  for (const alarm of alarms) sinks.text(step, 'alarm', alarm, now)
}

function tellEvaluation(sinks: OpenSinks, { split, version, summary }: EvalRow, updates: number): void {
  // The first version is looked at again for the test, beside the best one.
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

/** Nobody says, for example, whether an episode of CartPole is a success. */
const known = (figures: Readonly<Record<string, number | null>>) =>
  Object.fromEntries(Object.entries(figures).filter((entry): entry is [string, number] => entry[1] !== null))
