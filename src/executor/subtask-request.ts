import { hash } from 'node:crypto'
import { serialize } from 'node:v8'
import type { AgentRef } from '../agent.ts'
import { ManyworldsError } from '../errors.ts'
import type { SubTasksAsked } from '../protocol/messages.ts'
import type { TaskOptions } from '../task.ts'
import { checkTask } from '../task-checks.ts'
import type { Lease } from './task-entry.ts'

/** Deeper nesting is taken for endless recursion. */
const MAX_DEPTH = 32
/** Pending sub-tasks of one task. More could fill the driver's memory. */
const MAX_PENDING = 100_000

export type AskedTask = SubTasksAsked['tasks'][number]
export type AskedOptions = Pick<TaskOptions, 'timeoutMs' | 'maxAttempts' | 'requires' | 'rerun'> & { info?: unknown }

/** A checked sub-task, with its full id and a hash of its content. */
export interface AskedFor {
  readonly id: string
  readonly content: string
  readonly task: AskedTask
}

/**
 * Reads a request for sub-tasks; throws the error to answer with. A worker on another machine need not run our program, so
 * everything that `checkTask` checked in the worker is checked again here.
 */
export function readRequest(
  lease: Lease,
  { tasks, ordinal }: SubTasksAsked,
  refOf: (ref: AgentRef) => AgentRef | undefined,
): AskedFor[] {
  const { entry } = lease
  if (entry.depth >= MAX_DEPTH)
    throw new ManyworldsError(
      'SUBTASK_TOO_DEEP',
      `task '${entry.id}' is already ${MAX_DEPTH} sub-tasks deep; is this an endless recursion?`,
    )
  const pending = entry.children?.pending ?? 0
  if (pending + tasks.length > MAX_PENDING)
    throw new ManyworldsError(
      'SUBTASKS_TOO_MANY',
      `task '${entry.id}' asked for ${tasks.length} sub-tasks while ${pending} were pending; the limit is ${MAX_PENDING}; ask for them in several calls, one after the other`,
    )
  const asked = new Set<string>()
  return tasks.map((task, index) => {
    const id = `${entry.id}/${task.id ?? `${ordinal + 1}.${index + 1}`}`
    if (asked.has(id) || entry.children?.asked.get(id)?.lease === lease)
      throw new ManyworldsError(
        'TASK_DUPLICATE_ID',
        `task '${entry.id}' asked for two sub-tasks with the id '${id}'; omit the ids, or make them unique`,
      )
    asked.add(id)
    checkFields(task, index)
    entry.run.options.redactor?.checkName(id, 'the id of a sub-task')
    const ref = refOf(task.ref)
    if (ref === undefined) throw notShipped(entry.id, task.ref)
    const content = hash('sha256', serialize([ref, task.params, task.input]))
    return { id, content, task: { ...task, ref } }
  })
}

function checkFields({ id, ref, options }: AskedTask, index: number): void {
  const { timeoutMs, maxAttempts, requires, rerun } = options as AskedOptions
  checkTask({ id, agent: { ref }, timeoutMs, maxAttempts, requires, rerun }, index)
}

function notShipped(parent: string, { name, module }: AgentRef): ManyworldsError {
  const from = module.slice(0, 200)
  return new ManyworldsError(
    'AGENT_NOT_SHIPPED',
    `task '${parent}' asked for a sub-task of agent '${name.slice(0, 100)}' in '${from}', which the driver has not defined in the modules that it sent to the workers of this run; import the agent at the top level of the module that uses it, in the driver too`,
  )
}
