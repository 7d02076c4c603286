import { chooseTrainingDisplay } from '../../progress/training/choose.ts'
import type { RunHost } from '../../runners/run-host.ts'
import { say } from '../../text/say.ts'
import type { TrainingObserver, TrainingStart } from './observer.ts'
import type { Settings } from './settings.ts'

/** The observer of a training: the host program's, or this process's own display if `progress` is set. */
export function observeTraining(
  { progress }: Settings,
  host: RunHost | undefined,
): (start: TrainingStart) => TrainingObserver {
  const shown = progress === true ? chooseTrainingDisplay({ json: false, stream: process.stderr }) : progress
  const watch = host?.observeTraining ?? (shown || (() => ({})))
  return (start) => complete(watch(start))
}

/** Without an observer for notices, they are printed to stderr. */
const complete = (given: Partial<TrainingObserver>): TrainingObserver => ({
  goal: (goal) => given.goal?.(goal),
  run: (what, episodes, runId) => given.run?.(what, episodes, runId),
  episode: (runId, restored) => given.episode?.(runId, restored),
  update: (row) => given.update?.(row),
  evaluation: (row) => given.evaluation?.(row),
  epoch: (report) => given.epoch?.(report),
  notice: (line) => (given.notice ? given.notice(line) : say(line)),
  end: (ending) => given.end?.(ending),
})
