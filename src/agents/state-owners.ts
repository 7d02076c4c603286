import { TaskError } from '../errors.ts'

/** The task that a state belongs to. */
const owners = new WeakMap<object, string>()

/**
 * Refuses a state object that another episode has used, because changes by that episode would be visible in this one. This
 * applies also after the other episode has ended, so that the result does not depend on timing. Frozen objects may be shared.
 */
export function claimState(state: unknown, environment: string, task: string): void {
  if (typeof state !== 'object' || state === null || Object.isFrozen(state)) return
  const owner = owners.get(state)
  if (owner !== undefined)
    throw new TaskError(
      'ENVIRONMENT_FAULT',
      `reset of environment '${environment}' returned the same state object for task '${task}' as for task '${owner}'; create a new object in every reset (\`state: { ...start }\`), or freeze it if no step changes it`,
    )
  owners.set(state, task)
}
