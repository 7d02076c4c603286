import type { ReadyTask, TaskSource } from '../executor/source.ts'
import type { Redactor } from '../redaction/redactor.ts'
import type { Tasks } from './source-of.ts'

/** Tasks whose ids have no secrets in them: those of an array are checked now, others as they are read. */
export function withCheckedNames(tasks: Tasks, redactor: Redactor): Tasks {
  const check = ({ id, index, task }: ReadyTask) => {
    redactor.checkName(id, `the id of task ${index + 1}`)
    if (task.groupId !== undefined) redactor.checkName(task.groupId, `the groupId of task ${index + 1}`)
  }
  if (tasks.all) {
    for (const item of tasks.all) check(item)
    return tasks
  }
  const { source } = tasks
  const checked: TaskSource = {
    open: (wake, room) => source.open(wake, room),
    pull() {
      const item = source.pull()
      if (typeof item !== 'string') check(item)
      return item
    },
    settled: (index, response) => source.settled?.(index, response),
    close: () => source.close(),
  }
  return { ...tasks, source: checked }
}
