import { TaskError, type TaskErrorCode } from '../../src/errors.ts'
import type { RunStart } from '../../src/progress/observer.ts'
import { makeResponse } from '../../src/response.ts'
import type { TaskResponse, TaskStatus } from '../../src/task.ts'
import type { Step } from '../../src/trajectory/step.ts'
import { totalUsage } from '../../src/trajectory/usage.ts'

interface MadeUp {
  readonly status?: TaskStatus
  readonly code?: TaskErrorCode
  readonly message?: string
  readonly answer?: unknown
  readonly runMs?: number
  readonly restored?: boolean
  readonly trajectory?: readonly Step[]
  readonly logs?: readonly string[]
}

/** A response of a task that never was. */
export function response(id: string, made: MadeUp = {}): TaskResponse {
  const { status = 'success', code = 'TASK_THREW', message = 'it went wrong', answer = `answer of ${id}` } = made
  const { runMs = 10, restored = false, trajectory = [], logs = [] } = made
  const base = {
    id,
    agentName: 'made-up',
    usage: totalUsage(trajectory),
    timing: { queuedMs: 1, runMs, waitedMs: 0 },
    attempts: 1,
    worker: { id: 'local-0', host: 'here', pid: 4711 },
    logs,
    restored,
  }
  if (status === 'success') return makeResponse(base, { success: true, status, answer }, trajectory)
  const error = new TaskError(code, message, { name: 'Error' })
  return makeResponse(base, { success: false, status, error }, trajectory)
}

export const runStart = (more: Partial<RunStart> = {}): RunStart => ({
  runId: 'brave-otter',
  file: '.manyworlds/runs/brave-otter.db',
  total: 100,
  engineName: 'local',
  workerNum: 4,
  concurrency: 64,
  resumed: false,
  running: () => 12,
  ...more,
})
