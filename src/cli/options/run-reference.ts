import type { Option, Positional } from '../frame/command.ts'
import { listRunIds, listTrainingIds } from './run-ids.ts'

/** How a run is named, on every command that takes one. */
export const runReference = {
  value: 'RUN',
  description:
    'a run: its id, the beginning of an id if no other run begins like that, "last" for the newest, or the path of a run file',
  suggest: async () => ['last', ...(await listRunIds())],
} satisfies Positional

/** On commands that take a training as well. */
export const runOrTraining = {
  value: 'RUN',
  description:
    'a run or a training: its id, the beginning of an id if no other begins like that, "last" for the newest, or the path of a run file',
  suggest: async () => ['last', ...(await listRunIds()), ...(await listTrainingIds())],
} satisfies Positional

/** Where runs are looked for. */
export const runsFolder = {
  type: 'text',
  alias: 'store',
  value: 'DIR',
  description: 'the folder with the run files, instead of $MANYWORLDS_STORE or .manyworlds/runs',
  suggest: 'files',
} as const satisfies Option
