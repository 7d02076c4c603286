import { EMPTY_CURVE } from './curve.ts'
import { bestOf } from './evaluation.ts'
import { currentVersion, type Progress } from './next-epoch.ts'
import type { EvaluationFigures } from './training-record.ts'

/** The result of a training so far. */
export interface TrainingResult {
  readonly epochs: number
  readonly updates: number
  /** The best version: by validation or, without validation, the last. */
  readonly best: number
  /** The evaluations of the best version. */
  readonly validation: EvaluationFigures | null
  readonly test: EvaluationFigures | null
  /** SHA-256 of the curve. */
  readonly digest: string
}

export function resultOf({ updates, evaluations }: Pick<Progress, 'updates' | 'evaluations'>): TrainingResult {
  const last = updates.at(-1)
  const best = bestOf(evaluations)?.version ?? currentVersion(updates)
  const figures = (split: 'validation' | 'test') =>
    evaluations.find((row) => row.version === best && row.split === split)?.summary ?? null
  return {
    ...{ epochs: last?.epoch ?? 0, updates: updates.length, best, digest: last?.curveSha ?? EMPTY_CURVE },
    ...{ validation: figures('validation'), test: figures('test') },
  }
}
