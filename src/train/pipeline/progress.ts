import { chooseTrainingDisplay } from '../../progress/training/choose.ts'
import type { Surroundings } from '../../runners/surroundings.ts'
import { say } from '../../text/say.ts'
import type { TrainingObserver, TrainingStart } from './observer.ts'
import type { Settings } from './settings.ts'

/** Who watches a training: the program around the script, or this process if it is asked to show something. */
export function observeTraining(
  { progress }: Settings,
  around: Surroundings | undefined,
): (start: TrainingStart) => TrainingObserver {
  const shown = progress === true ? chooseTrainingDisplay({ json: false, stream: process.stderr }) : progress
  const watch = around?.observeTraining ?? (shown || (() => ({})))
  return (start) => complete(watch(start))
}

/** Notices that nobody takes are said on stderr. */
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
