import { branchesOf } from '../../../src/trajectory/branches.ts'
import type { ReportPart, StepLine, TaskDetails } from '../../../src/view/api.ts'

/** What a report contains of a task besides its row in the table. */
export interface OpenedTask {
  readonly task: TaskDetails
  /** By the number of their start. */
  readonly steps: Readonly<Record<number, readonly StepLine[]>>
}

/** By run and by task. Maps instead of objects, because an id may be the name of an inherited property, such as `constructor`. */
export type OpenedTasks = ReadonlyMap<string, ReadonlyMap<string, OpenedTask>>

/** Combines the parts of each task. */
export function openedTasks(parts: readonly ReportPart[]): OpenedTasks {
  const runs = new Map<string, Map<string, OpenedTask>>()
  for (const part of parts) {
    let tasks = runs.get(part.run)
    if (!tasks) runs.set(part.run, (tasks = new Map()))
    if (part.kind === 'task') tasks.set(part.task.id, { task: part.task, steps: {} })
    else {
      const before = tasks.get(part.id)
      if (before) tasks.set(part.id, part.kind === 'logs' ? withLogs(before, part.logs) : withSteps(before, part.steps))
    }
  }
  return runs
}

function withLogs({ task, steps }: OpenedTask, logs: readonly TaskDetails['attempts'][number]['logs'][]): OpenedTask {
  const attempts = task.attempts.map((attempt, at) => ({ ...attempt, logs: logs[at] ?? attempt.logs }))
  return { task: { ...task, attempts }, steps }
}

function withSteps({ task }: OpenedTask, steps: OpenedTask['steps']): OpenedTask {
  const attempts = task.attempts.map((attempt) => {
    const lines = attempt.start === null ? undefined : steps[attempt.start]
    if (lines === undefined) return attempt
    return {
      ...attempt,
      branches: branchesOf(
        task.agentName,
        lines.map(({ step }) => step),
      ),
    }
  })
  return { task: { ...task, attempts }, steps }
}
