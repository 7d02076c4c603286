import type { TrainingSummary } from '../../../store/trainings/stored-training.ts'
import type { TrainingLine } from './render.ts'

/** What is shown of each: also of one that cannot be read. */
export const linesOf = (summaries: readonly TrainingSummary[]): TrainingLine[] =>
  summaries.map(
    ({ found, overview, problem }) =>
      overview ?? { id: found.id, file: found.path, status: 'unreadable', problem: problem.message },
  )
