import type { TaskGrade } from '../grade/grade.ts'
import type { Grader } from '../grade/grader.ts'
import { gradeFrom, gradingTask } from '../grade/grading-task.ts'
import { allModels } from '../models/driver/models-file.ts'
import { modelSecrets } from '../models/secrets.ts'
import { redactorOf } from '../redaction/config.ts'
import type { RunConfig } from '../run-config.ts'
import type { FoundRun } from '../store/find-run.ts'
import { GradeWriter, type NewGrade } from '../store/grade-writer.ts'
import { RunFile } from '../store/run-file.ts'
import { automaticId, type TaskLike } from '../task.ts'
import { streamTask } from './runners.ts'

/** Grades per transaction. */
const BATCH = 200

interface Asked {
  readonly id: string
  readonly before: TaskGrade | undefined
}

export interface Regraded extends Asked {
  readonly after: TaskGrade
}

/**
 * Grades the stored answers of a run again, by another grader. Nothing else of it is run; earlier grades are kept, and the
 * new ones count. If a grading is interrupted, the earlier grade stays.
 */
export async function* regradeRun(found: FoundRun, grader: Grader, config: RunConfig): AsyncGenerator<Regraded> {
  using writer = new GradeWriter(found)
  using file = RunFile.at(found)
  const asked = new Map<string, Asked>()
  let batch: NewGrade[] = []
  const flush = () => {
    if (batch.length > 0) writer.write(batch)
    batch = []
  }
  const { gradeTimeoutMs = 60_000, ...rest } = config
  const redactor = redactorOf(config.redact ?? [], modelSecrets(allModels(config)))
  const gradings = streamTask(samplesOf(file, grader, asked), { ...rest, timeoutMs: gradeTimeoutMs, store: false })
  try {
    for await (const response of gradings) {
      const { id, before } = asked.get(response.id)!
      asked.delete(response.id)
      const given = gradeFrom(grader, response)
      const after = redactor ? redactor.value(given) : given
      if (after.error?.code === 'GRADING_CANCELLED') continue
      batch.push({ id, grade: after })
      if (batch.length >= BATCH) flush()
      yield { id, before, after }
    }
  } finally {
    flush()
  }
}

/** A grading task for each stored answer. `asked`: the graded task, by the automatic id of its grading task. */
async function* samplesOf(file: RunFile, grader: Grader, asked: Map<string, Asked>): AsyncGenerator<TaskLike> {
  let index = 0
  for (const { response, input, info } of file.answered()) {
    if (!response.success) continue
    asked.set(automaticId(index++), { id: response.id, before: response.grade })
    yield await gradingTask(grader, { ...info, input }, response)
  }
}
