import type { EventEmitter } from 'node:events'
import { OUTCOME } from '../../protocol/messages.ts'
import { pack } from '../../protocol/pack.ts'
import { isLeftover } from '../../worker/context.ts'
import { errorItem } from '../../worker/error-item.ts'
import type { TaskRunner } from '../../worker/task-runner.ts'

const runners = new Set<TaskRunner>()

/**
 * An error that a task throws outside its own call stack (in a timer, say) fails that task, as in a worker process. All other
 * errors are handled as they would be without this. Returns a function that undoes it.
 */
export function failTasksOfStrayErrors(runner: TaskRunner): () => void {
  runners.add(runner)
  // Someone else's callback, such as that of `node:domain`, is left alone.
  if (!capturing && !process.hasUncaughtExceptionCaptureCallback()) capture(true)
  return () => {
    runners.delete(runner)
    if (runners.size === 0 && capturing) capture(false)
  }
}

let capturing = false

/** A capture callback instead of a listener: with a listener, a test runner's own listener would also see errors of tasks, and fail its test run. */
function capture(on: boolean): void {
  capturing = on
  process.setUncaughtExceptionCaptureCallback(on ? onError : null)
}

function onError(error: Error): void {
  if (isLeftover(error) || failTaskOf(error)) return
  if ((process as EventEmitter).emit('uncaughtException', error, 'uncaughtException')) return
  // No listener: throw it again, so that Node prints it and ends the process as usual.
  capture(false)
  setImmediate(() => {
    throw error
  })
}

/** False: no running task has thrown it. */
function failTaskOf(error: Error): boolean {
  for (const runner of runners) {
    const task = runner.current()
    if (task === undefined) continue
    if (!task.settled) {
      runner.endings.settle(task, OUTCOME.failed, pack(errorItem('UNCAUGHT_IN_TASK', error)))
      task.abort(error)
    }
    return true
  }
  return false
}
