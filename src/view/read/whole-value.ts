import { ManyworldsError } from '../../errors.ts'
import { Problem } from '../../network/http-problem.ts'
import { plainError } from '../../response.ts'
import type { PagedRun } from '../../store/paged/paged-run.ts'
import { endedAttempts, taskRecord } from '../../store/paged/task-record.ts'
import { ROLE } from '../../store/schema.ts'
import { MOST_WHOLE_CHARS, type TaskPart, type WholeValue } from '../api.ts'
import { wholeJson } from './cut-texts.ts'
import { noTask } from './task-details.ts'

export interface ValueAsked {
  readonly task: string
  readonly of: TaskPart
  /** The position in `TaskDetails.attempts`. Ended attempts come first, and their positions do not change. */
  readonly attempt: number
}

/** A part of a task with complete texts. */
export function wholeValue(run: PagedRun, asked: ValueAsked): WholeValue {
  const json = wholeJson(partOf(run, asked), MOST_WHOLE_CHARS)
  if (json === undefined)
    throw new Problem(
      413,
      'TOO_LARGE',
      `the texts have more than ${MOST_WHOLE_CHARS / 1e6} MB; \`manyworlds show RUN TASK --json\` prints them`,
    )
  return { value: json }
}

function partOf(run: PagedRun, { task: id, of, attempt }: ValueAsked): unknown {
  const task = taskRecord(run, id)
  if (task === undefined) throw noTask(run, id)
  if (of === 'input' || of === 'info') return task[of]
  const ended = endedAttempts(run, task.task)
  const { response } = (of === 'grade' ? ended.find(({ role }) => role === ROLE.final) : ended[attempt]) ?? {}
  if (response === undefined) throw new ManyworldsError('TASK_NOT_FOUND', 'the task has no such attempt')
  if (of === 'grade') return response.grade
  if (of === 'answer') return response.success ? response.answer : undefined
  return response.success ? undefined : plainError(response.error)
}
