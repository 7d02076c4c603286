import { TaskError } from '../errors.ts'

/** The task that a state belongs to. */
const owners = new WeakMap<object, string>()

/**
 * Refuses a state that another episode has had: what that one did to it would show in this one. It is said also when the
 * other is over, because whether two episodes overlap depends on the worker and on time. Frozen objects may be shared.
 */
export function ownState(state: unknown, environment: string, task: string): void {
  if (typeof state !== 'object' || state === null || Object.isFrozen(state)) return
  const owner = owners.get(state)
  if (owner !== undefined)
    throw new TaskError(
      'ENVIRONMENT_FAULT',
      `reset of environment '${environment}' returned for task '${task}' the very state object that task '${owner}' had; make a new one in every reset, as in \`state: { ...start }\`, or freeze it if no step changes it`,
    )
  owners.set(state, task)
}
