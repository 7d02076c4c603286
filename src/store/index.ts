/** Reading run files: `manyworlds/runs`. */
export { RunFile, type SeenResponse } from './run-file.ts'
export type { SeenStep, StepTail } from './step-tail.ts'
export type { RunOverview, StoredAttempt, StoredTask, UnfinishedAttempt } from './stored-task.ts'
