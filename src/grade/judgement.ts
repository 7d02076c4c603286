import type { Step } from '../trajectory/step.ts'
import { type Untrainable, type UntrainableCode, whyUntrainable } from '../trajectory/trainable.ts'
import type { TrajectoryParts } from '../trajectory/trajectory.ts'
import { type Blame, blameFor, type OutcomeStatus } from './blame.ts'
import type { Grade, TaskGrade } from './grade.ts'
import { ROUNDING } from './mean-interval.ts'

/**
 * How one rollout counts: its reward, whether it is solved, and who is to blame if it has no result. This is the only definition:
 * summaries, `show`, the viewer, comparisons, gates, exports, the rollout server and trainings all ask it.
 *
 * Solved, in this order:
 * 1. A grade counts, even of a rollout that failed: its `success` or, if the grader gave only a number, a reward of 1 or more.
 *    The result of an environment is the grade of a rollout that has no grader.
 * 2. A grade without a verdict and without a number, or with an error (the grader threw, or has not answered yet), is no result.
 * 3. A failure of the agent is unsolved; a failure of the infrastructure is no result (`blame.ts`).
 * 4. An answer that nothing grades is solved, because it did not fail.
 */
export interface Judgement {
  /** Null is not zero: the reward is unknown. */
  readonly reward: number | null
  /** Null: no result. */
  readonly solved: boolean | null
  /**
   * What `solved` is based on; null: no result.
   * - `verdict`: a grader or an environment said so.
   * - `grade`: the number of a grader.
   * - `return`: the reward of an environment, which has a scale of its own. Do not prefer one version to another by it.
   * - `failure`: the agent failed.
   * - `trust`: nothing grades the answer, and it did not fail.
   */
  readonly basis: 'verdict' | 'grade' | 'return' | 'failure' | 'trust' | null
  /** Who caused a failure, or that there is no result; null: it has a grade, or counts as solved. */
  readonly blame: Blame | null
  /** Why it failed or has no result: an error code. */
  readonly reason?: string
}

/** What a judgement needs to know about a rollout. */
export interface Judged {
  readonly status: OutcomeStatus
  /** The error code of a rollout that did not succeed. */
  readonly code?: string
  /** Left out: nothing grades it. An answer that waits for its grade has one with the error `GRADING_PENDING`. */
  readonly grade?: Grade & Pick<TaskGrade, 'error' | 'usage'> & Partial<Pick<TaskGrade, 'grader'>>
  /** The result of an environment, which is the grade if there is no other. */
  readonly episode?: Pick<Grade, 'reward' | 'success'> | undefined
  /** Overrides the blame that follows from the code. */
  readonly blame?: Blame
}

const NOT_RUN = 'NOT_RUN'
const NOT_GRADED = 'NOT_GRADED'

export function judgementOf({ status, code, grade, episode, blame }: Judged): Judgement {
  if (grade) {
    const reward = grade.error ? null : finite(grade.reward)
    const solved = grade.error ? null : (grade.success ?? atLeastOne(reward))
    if (solved !== null) {
      const basis = typeof grade.success === 'boolean' ? 'verdict' : isOfEnvironment(grade) ? 'return' : 'grade'
      return { reward, solved, basis, blame: null }
    }
    if (status === 'success') return noResult(grade.error?.code ?? NOT_GRADED)
  }
  if (status === 'success') {
    const reward = finite(episode?.reward)
    const solved = episode?.success ?? atLeastOne(reward)
    if (solved === null) return { reward, solved: true, basis: 'trust', blame: null }
    const basis = typeof episode?.success === 'boolean' ? 'verdict' : 'return'
    return { reward, solved, basis, blame: null }
  }
  const reason = code ?? (status === 'not-run' ? NOT_RUN : status)
  if ((blame ?? blameFor(status, code)) !== 'agent') return noResult(reason)
  return { reward: null, solved: false, basis: 'failure', blame: 'agent', reason }
}

/** The result of an environment has the name of the agent as its grader, and no hash (`gradeOfEpisode`). */
const isOfEnvironment = ({ grader }: NonNullable<Judged['grade']>) =>
  grader !== undefined && grader.sha256 === undefined

const noResult = (reason: string): Judgement => ({
  ...{ reward: null, solved: null, basis: null },
  ...{ blame: 'infrastructure', reason },
})

/** A sum of rewards may have overflowed. */
const finite = (reward: number | null | undefined): number | null => (Number.isFinite(reward) ? reward! : null)

const atLeastOne = (reward: number | null): boolean | null => (reward === null ? null : reward >= 1 - ROUNDING)

/** Whether a grade or the result of an environment was given, as opposed to a failure or an answer that nothing grades. */
export const isGraded = ({ basis }: Judgement): boolean =>
  basis === 'verdict' || basis === 'grade' || basis === 'return'

/** The same for a trajectory. */
export function judgementOfTrajectory(trajectory: Pick<TrajectoryParts, 'ending' | 'grade' | 'episode'>): Judgement {
  const { ending, grade, episode } = trajectory
  const failed = ending.kind === 'failed' || ending.kind === 'cancelled' ? ending : undefined
  return judgementOf({
    status: failed ? (failed.kind as 'failed' | 'cancelled') : 'success',
    ...(failed && { code: failed.error.code }),
    ...(grade && { grade }),
    ...(episode && { episode }),
  })
}

/** A model call of the agent that may not be trained on, and why. */
export interface RefusedCall extends Untrainable {
  readonly step: number
}

/**
 * The agent's model calls that may not be trained on (`trajectory/trainable.ts`); empty: the whole trajectory may be trained on.
 * Whether it has a reward to be trained with is in its judgement. `allowed`: reasons that do not count.
 */
export function refusedCalls(
  { steps }: { readonly steps: readonly Step[] },
  allowed: readonly UntrainableCode[] = [],
): RefusedCall[] {
  return steps.flatMap((step) => {
    const found = step.kind === 'model' && step.role === 'agent' ? whyUntrainable(step, allowed) : undefined
    return found === undefined ? [] : [{ step: step.index, ...found }]
  })
}
