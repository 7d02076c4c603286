import { isOutOfPatience, type Progress } from './next-epoch.ts'
import type { TrainingParts } from './open-training.ts'
import type { SelfDirectedLearner } from './self-directed-learner.ts'
import { Stopped } from './training-runs.ts'
import type { EpochTarget } from './updates.ts'

/** A finished epoch. */
export interface SelfDirectedEpoch {
  readonly epoch: number
  /** The version that was validated in this epoch, if any. */
  readonly validated: number | undefined
  /** Whether this is the last epoch. */
  readonly isLast: boolean
}

interface EpochContext {
  readonly parts: TrainingParts
  readonly progress: () => Progress
  readonly dropVersions: () => void
}

/**
 * Serves the requests of a learner until an epoch has ended: when it requests something for the next epoch, or has
 * finished. Undefined if everything was done before.
 */
export async function runSelfDirectedEpoch(
  learner: SelfDirectedLearner,
  { parts, progress, dropVersions }: EpochContext,
  { epochs }: Pick<EpochTarget, 'epochs'>,
): Promise<SelfDirectedEpoch | undefined> {
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
      // The process was killed before this validation, so the last epoch of the earlier session had not ended.
      if (isNew && last > 0) epoch ??= last
      if (isNew) validated = version
      dropVersions()
      continue
    }
    const isOver = want.kind === 'finished' || want.epoch > epochs || isOutOfPatience(progress())
    if (epoch !== undefined && (isOver || want.epoch > epoch)) {
      if (want.kind === 'finished') observer.notice(`the learner has finished: ${want.why}`)
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

/** The process may have been killed after the last epoch, before its test. */
function isTestMissing({ evaluations, versions }: TrainingParts): boolean {
  const best = evaluations.best?.version ?? versions.current.ref.version
  return evaluations.canTest && evaluations.find(best, 'test') === undefined
}
