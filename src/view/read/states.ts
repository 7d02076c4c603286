import type { RunOverview } from '../../store/stored-task.ts'
import type { TaskStatus } from '../../task.ts'
import { STATES, type TaskState } from '../api.ts'

/** `status`: that of the response; null: there is none. */
export const stateOf = (status: TaskStatus | null, isRunning: boolean): TaskState =>
  status ?? (isRunning ? 'running' : 'pending')

export const stateNumber = (status: TaskStatus | null, isRunning: boolean): number =>
  STATES.indexOf(stateOf(status, isRunning))

/** The number of the session of a run in progress: attempts of earlier sessions were interrupted. */
export const sessionInProgress = ({ status, sessions }: RunOverview): number | undefined =>
  status === 'running' ? sessions : undefined
