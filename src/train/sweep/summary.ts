import { boundedInterval, meanOf, studentInterval } from '../../grade/mean-interval.ts'
import type { TrainingResult } from '../pipeline/result.ts'
import type { EvaluationFigures, Figure } from '../pipeline/training-record.ts'
import type { SweepPoint } from './grid.ts'

/** The result of one training of a sweep. */
export interface SweepResult extends TrainingResult {
  /** The id of the training. */
  readonly id: string
  /** `lr0.05.rollouts4`. */
  readonly label: string
  readonly values: Readonly<Record<string, unknown>>
  readonly seed: number
  /** True: an earlier session finished it, and nothing was run. */
  readonly restored: boolean
  /** Why the learner failed, such as NaN at a learning rate that is too high. Omitted if it finished. */
  readonly error?: { readonly code: string; readonly message: string }
}

/** The results of a point over its seeds. */
export interface PointSummary {
  readonly label: string
  readonly values: Readonly<Record<string, unknown>>
  /** The number of trainings that finished, and that failed. */
  readonly finished: number
  readonly failed: number
  /**
   * The results of each training's best version, averaged over seeds, with 95 % intervals. Null if nothing was judged.
   */
  readonly validation: Figure | null
  readonly test: Figure | null
  /** What `validation` and `test` measure: success rates or rewards. */
  readonly measure: 'success' | 'reward'
}

export interface SweepSummary {
  /** The name of the sweep. */
  readonly id: string
  readonly points: readonly PointSummary[]
  /**
   * The best point by validation, the first of equals; never by the test, which must not be used for selection. Null if
   * nothing was judged.
   */
  readonly best: PointSummary | null
  readonly trainings: number
  /** How many of these were finished in earlier sessions. */
  readonly restored: number
}

const CONFIDENCE = 0.95

export function summarizeSweep(
  id: string,
  points: readonly SweepPoint[],
  results: readonly SweepResult[],
): SweepSummary {
  const measure = results.every(({ validation, test }) => (validation ?? test)?.success !== null) ? 'success' : 'reward'
  const summaries = points.map(({ label, values }): PointSummary => {
    const ofPoint = results.filter((result) => result.label === label)
    const finished = ofPoint.filter(({ error }) => error === undefined)
    const mean = (of: (result: SweepResult) => EvaluationFigures | null) =>
      meanFigure(finished.flatMap((result) => of(result)?.[measure]?.value ?? []))
    return {
      ...{ label, values, finished: finished.length, failed: ofPoint.length - finished.length, measure },
      ...{ validation: mean(({ validation }) => validation), test: mean(({ test }) => test) },
    }
  })
  const best = summaries.reduce<PointSummary | null>((best, point) => (isBetter(point, best) ? point : best), null)
  const restored = results.filter((result) => result.restored).length
  return { id, points: summaries, best, trainings: results.length, restored }
}

/** A point with a failed training is worse than any without. */
function isBetter(point: PointSummary, best: PointSummary | null): boolean {
  if (point.validation === null) return false
  if (best?.validation == null) return true
  if (point.failed > 0 !== best.failed > 0) return best.failed > 0
  return point.validation.value > best.validation.value
}

/**
 * The mean over seeds. Each value is a mean over many episodes, so Student's interval applies, limited to 0 to 1 for
 * rates. If all values are equal, it is not defined; then an interval for arbitrary values between 0 and 1 is used.
 */
function meanFigure(values: readonly number[]): Figure | null {
  if (values.length === 0) return null
  const value = meanOf(values)
  const areShares = values.every((one) => one >= 0 && one <= 1)
  const student = studentInterval(values, CONFIDENCE)
  if (!areShares) return { value, ...student }
  if (!Number.isFinite(student.low)) return { value, ...boundedInterval(values, [0, 1], CONFIDENCE) }
  return { value, low: Math.max(0, student.low), high: Math.min(1, student.high) }
}
