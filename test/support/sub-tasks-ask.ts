import { SUB_TASKS } from '../../src/protocol/messages.ts'

/** How a worker asks for sub-tasks. */
export const SUB_TASKS_ASK = {
  type: 'ask',
  service: SUB_TASKS,
  kind: 'one',
  slot: 'give',
  clock: 'runs',
} as const
