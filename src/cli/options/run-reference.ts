import type { Option, Positional } from '../frame/command.ts'
import { listRunIds, listTrainingIds } from './run-ids.ts'

/** The argument RUN, for every command that takes a run. */
export const runReference = {
  value: 'RUN',
  description:
    'a run: its id, the beginning of an id if no other run begins with it, "last" for the newest, or the path of a run file',
  suggest: async () => ['last', ...(await listRunIds())],
} satisfies Positional

/** The same for commands that also take a training. */
export const runOrTraining = {
  value: 'RUN',
  description:
    'a run or a training: its id, the beginning of an id if no other begins with it, "last" for the newest, or the path of a run file',
  suggest: async () => ['last', ...(await listRunIds()), ...(await listTrainingIds())],
} satisfies Positional

/** The option --dir: the folder to look in. */
export const runsFolder = {
  type: 'text',
  alias: 'store',
  value: 'DIR',
  description: 'the folder with the run files, instead of $MANYWORLDS_STORE or .manyworlds/runs',
  suggest: 'files',
} as const satisfies Option
