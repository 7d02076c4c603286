import type { TrainingSummary } from '../../../store/trainings/stored-training.ts'
import type { TrainingLine } from './render.ts'

/** One line per training, also for a training that cannot be read. */
export const linesOf = (summaries: readonly TrainingSummary[]): TrainingLine[] =>
  summaries.map(
    ({ found, overview, problem }) =>
      overview ?? { id: found.id, file: found.path, status: 'unreadable', problem: problem.message },
  )
