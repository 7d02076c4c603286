import type { TaskErrorCode } from '../errors.ts'
import type { TaskStatus } from '../task.ts'

/**
 * Who caused a rollout to have no answer. A failure of the agent counts as unsolved. A failure of the infrastructure says
 * nothing about the agent: the rollout has no result and is counted separately.
 */
export type Blame = 'agent' | 'infrastructure'

/** `not-run`: the run ended before this rollout, because its budget was used up or it was stopped. */
export type OutcomeStatus = TaskStatus | 'not-run'

const BY_CODE: Readonly<Record<TaskErrorCode, Blame>> = {
  TASK_THREW: 'agent',
  UNCAUGHT_IN_TASK: 'agent',
  ANSWER_NOT_SERIALIZABLE: 'agent',
  SETUP_FAILED: 'agent',
  ALL_SUBAGENTS_FAILED: 'agent',
  TASK_TIMEOUT: 'agent',
  TASK_BLOCKED_WORKER: 'agent',
  // Reported only if the crash is charged to the task. Tasks of a lost machine are not charged and run again.
  WORKER_CRASHED: 'agent',
  // No worker could answer the task, and it is not certain that the task is the reason.
  RERUN_LIMIT: 'infrastructure',
  PROCESS_EXIT: 'agent',
  ACTION_INVALID: 'agent',
  ENVIRONMENT_FAULT: 'infrastructure',
  // Charged to the episode whose action caused it: an agent that breaks its world must be counted.
  WORLD_FAILED: 'agent',
  WORLD_CRASHED: 'agent',
  WORLD_TIMEOUT: 'agent',
  WORLD_UNAVAILABLE: 'infrastructure',
  WORLD_NOT_DETERMINISTIC: 'infrastructure',
  WORLD_DISCONNECTED: 'infrastructure',
  // The agent's output was too long, was refused, or has the wrong form.
  MODEL_OUTPUT_INVALID: 'agent',
  MODEL_CONTEXT_LENGTH: 'agent',
  MODEL_CONTENT_FILTER: 'agent',
  // HTTP 400, 404, 422: a misspelled model, a parameter that the server does not know, a wrong address. What the agent itself can
  // cause has a code of its own: a conversation that is too long, or refused for its content.
  MODEL_INVALID_REQUEST: 'infrastructure',
  MODEL_MISMATCH: 'infrastructure',
  MODEL_UNKNOWN: 'infrastructure',
  MODEL_AUTHENTICATION: 'infrastructure',
  MODEL_RATE_LIMIT: 'infrastructure',
  MODEL_TRANSIENT: 'infrastructure',
  MODEL_TIMEOUT: 'infrastructure',
  MODEL_PERMIT_TIMEOUT: 'infrastructure',
  MODEL_UNAVAILABLE: 'infrastructure',
  CACHE_MISS: 'infrastructure',
  // A mistake in the code of the agent, like a parameter that the server does not know.
  REQUEST_INVALID: 'infrastructure',
  PACKAGE_MISSING: 'infrastructure',
  REQUIRES_UNMET: 'infrastructure',
  TASK_CANCELLED: 'infrastructure',
  RUN_DEADLINE: 'infrastructure',
  RUN_BUDGET: 'infrastructure',
  // The task never ran. The failure of its dependency is already counted.
  DEPENDENCY_FAILED: 'infrastructure',
}

/** For error codes of newer versions, which a run file may contain. */
const BY_STATUS: Readonly<Record<Exclude<OutcomeStatus, 'success'>, Blame>> = {
  failed: 'agent',
  timeout: 'agent',
  crashed: 'agent',
  cancelled: 'infrastructure',
  'not-run': 'infrastructure',
}

export function blameFor(status: Exclude<OutcomeStatus, 'success'>, code?: string): Blame {
  const known = code !== undefined && Object.hasOwn(BY_CODE, code)
  return known ? BY_CODE[code as TaskErrorCode] : BY_STATUS[status]
}
