/** Reading run files: `manyworlds/runs`. */
export { RunFile, type SeenResponse } from './run-file.ts'
export type { RunOverview, StoredAttempt, StoredTask } from './stored-task.ts'
