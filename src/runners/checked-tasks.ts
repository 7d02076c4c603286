import type { ReadyTask, TaskSource } from '../executor/source.ts'
import type { Redactor } from '../redaction/redactor.ts'
import type { ResolvedConfig } from '../run-config-schema.ts'
import { modelsCheck } from './open-models.ts'
import { PushSource } from './push-source.ts'
import type { Tasks } from './source-of.ts'

type Check = (item: ReadyTask) => void

/** Tasks that can be run and stored: those of an array are checked now, others as they are read. */
export function checkedTasks(tasks: Tasks, config: ResolvedConfig, redactor: Redactor | undefined): Tasks {
  const checks: Check[] = []
  if (redactor) checks.push(namesCheck(redactor))
  // In an executor, a bad task fails alone: others go on using it.
  if (!(tasks.source instanceof PushSource)) checks.push(modelsCheck(config))
  return checks.reduce(withCheck, tasks)
}

/** Refuses ids that contain secrets. */
function namesCheck(redactor: Redactor): Check {
  return ({ id, index, task }) => {
    redactor.checkName(id, `the id of task ${index + 1}`)
    if (task.groupId !== undefined) redactor.checkName(task.groupId, `the groupId of task ${index + 1}`)
  }
}

function withCheck(tasks: Tasks, check: Check): Tasks {
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
