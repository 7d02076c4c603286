import type { TaskErrorCode } from '../errors.ts'
import type { TaskStatus } from '../task.ts'

/**
 * Who is to blame that a rollout has no answer. What the agent did counts as unsolved. What happened to it tells nothing about the
 * agent: such a rollout has no result, and is counted apart.
 */
export type Blame = 'agent' | 'infrastructure'

/** `not-run`: the run left it undone, because its budget was used up or it was stopped. */
export type OutcomeStatus = TaskStatus | 'not-run'

const BY_CODE: Readonly<Record<TaskErrorCode, Blame>> = {
  TASK_THREW: 'agent',
  UNCAUGHT_IN_TASK: 'agent',
  ANSWER_NOT_SERIALISABLE: 'agent',
  SETUP_FAILED: 'agent',
  ALL_SUBAGENTS_FAILED: 'agent',
  TASK_TIMEOUT: 'agent',
  TASK_BLOCKED_WORKER: 'agent',
  // It is in a response only if the crash was charged to the task; a lost machine is not, and its tasks run again.
  WORKER_CRASHED: 'agent',
  PROCESS_EXIT: 'agent',
  ACTION_INVALID: 'agent',
  ENVIRONMENT_FAULT: 'infrastructure',
  // Charged to the episode whose action it was: an agent that breaks its world must not escape the count.
  WORLD_FAILED: 'agent',
  WORLD_CRASHED: 'agent',
  WORLD_TIMEOUT: 'agent',
  WORLD_UNAVAILABLE: 'infrastructure',
  WORLD_NOT_DETERMINISTIC: 'infrastructure',
  WORLD_DISCONNECTED: 'infrastructure',
  // What the agent said was too long, was refused, or is not what it was to say.
  MODEL_OUTPUT_INVALID: 'agent',
  MODEL_CONTEXT_LENGTH: 'agent',
  MODEL_CONTENT_FILTER: 'agent',
  MODEL_INVALID_REQUEST: 'agent',
  MODEL_MISMATCH: 'infrastructure',
  MODEL_UNKNOWN: 'infrastructure',
  MODEL_AUTHENTICATION: 'infrastructure',
  MODEL_RATE_LIMIT: 'infrastructure',
  MODEL_TRANSIENT: 'infrastructure',
  MODEL_TIMEOUT: 'infrastructure',
  MODEL_PERMIT_TIMEOUT: 'infrastructure',
  CACHE_MISS: 'infrastructure',
  PACKAGE_MISSING: 'infrastructure',
  REQUIRES_UNMET: 'infrastructure',
  TASK_CANCELLED: 'infrastructure',
  RUN_DEADLINE: 'infrastructure',
  RUN_BUDGET: 'infrastructure',
  // It never ran: whatever failed before it is counted already.
  DEPENDENCY_FAILED: 'infrastructure',
}

/** For codes of newer versions, which a run file may hold. */
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
