import { isHopeless, type Progress } from './next-epoch.ts'
import type { TrainingParts } from './open-training.ts'
import { Stopped } from './training-runs.ts'
import type { EpochWishes } from './updates.ts'
import type { WantingLearner } from './wanting.ts'

/** An epoch that is done. */
export interface WantedEpoch {
  readonly epoch: number
  /** The version that was validated in it, if any. */
  readonly validated: number | undefined
  /** No other comes after it. */
  readonly isLast: boolean
}

interface Doing {
  readonly parts: TrainingParts
  readonly progress: () => Progress
  readonly dropVersions: () => void
}

/**
 * Does what a learner wants, until an epoch is over: that is known when it wants something of the next, or nothing more. Undefined: all was done before.
 */
export async function runWanted(
  learner: WantingLearner,
  { parts, progress, dropVersions }: Doing,
  { epochs }: Pick<EpochWishes, 'epochs'>,
): Promise<WantedEpoch | undefined> {
  const { updates, evaluations, observer, runs, settings, sets } = parts
  const last = updates.rows.at(-1)?.epoch ?? 0
  const testEpisodes = evaluations.canTest ? 2 * sets.test.length * settings.evaluate!.testRollouts : 0
  let epoch: number | undefined
  let validated: number | undefined
  for (;;) {
    if (runs.stopped) throw new Stopped()
    const want = learner.want()
    if (want.kind === 'validate') {
      const { version } = want
      const isNew = evaluations.find(version, 'validation') === undefined
      learner.validated({ version, outcomes: await evaluations.outcomes(version) })
      // Killed before this validation, an epoch of an earlier session was not over.
      if (isNew && last > 0) epoch ??= last
      if (isNew) validated = version
      dropVersions()
      continue
    }
    const isOver = want.kind === 'finished' || want.epoch > epochs || isHopeless(progress())
    if (epoch !== undefined && (isOver || want.epoch > epoch)) {
      if (want.kind === 'finished') observer.notice(`it is finished: ${want.why}`)
      return { epoch, validated, isLast: isOver }
    }
    if (isOver) return isTestMissing(parts) && last > 0 ? { epoch: last, validated, isLast: true } : undefined
    if (epoch === undefined)
      observer.goal({ epoch: want.epoch, epochs, left: (want.left ?? want.tasks.length) + testEpisodes })
    epoch = want.epoch
    await updates.learn(await updates.collect(updates.planOf(want), { started: () => {}, room: () => {} }))
    dropVersions()
  }
}

/** Killed after the last epoch, before its test. */
function isTestMissing({ evaluations, versions }: TrainingParts): boolean {
  const best = evaluations.best?.version ?? versions.current.ref.version
  return evaluations.canTest && evaluations.find(best, 'test') === undefined
}
