import { jsonLine } from '../../text/json.ts'
import type { ObserveTraining } from '../../train/pipeline/observer.ts'
import { surviveErrors } from '../survive-errors.ts'
import { TrainingTally } from './tally.ts'

/**
 * For programs: one JSON object per line for each event, with its `type`, `training`, and `at`, its time in epoch
 * milliseconds.
 */
export function jsonTraining(stream: NodeJS.WritableStream = process.stdout): ObserveTraining {
  surviveErrors(stream)
  return (start) => {
    const tally = new TrainingTally(start)
    const { id: training, updates, evaluations: _, ...facts } = start
    const say = (type: string, fields: object) =>
      void stream.write(`${jsonLine({ type, training, at: Date.now(), ...fields })}\n`)
    say('start', { ...facts, resumed: updates.length > 0, updates: updates.length })
    return {
      goal: (goal) => tally.goal(goal),
      run: (...run) => tally.run(...run),
      episode: (runId, restored) => tally.episode(runId, restored),
      update(row) {
        tally.update(row)
        // The members of the batch are in the store.
        const { members: _, stateSha: __, ...fields } = row
        say('update', fields)
      },
      evaluation(row) {
        tally.evaluation(row)
        say('evaluation', row)
      },
      epoch(report) {
        tally.epoch(report)
        const { id: _, ...fields } = report
        say('epoch', fields)
      },
      notice: (message) => say('notice', { message }),
      end({ error, interrupted }) {
        const { epoch, updates, episodes, sessionEpisodes, version, elapsedMs } = tally.snapshot()
        const state = error ? 'failed' : interrupted ? 'interrupted' : 'finished'
        say('summary', {
          ...{ state, error, epoch, updates, episodes, sessionEpisodes, version, elapsedMs },
          ...{ best: tally.best?.version ?? null, test: tally.test ?? null, digest: tally.digest ?? null },
        })
      },
    }
  }
}
