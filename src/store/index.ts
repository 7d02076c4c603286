/** `manyworlds/runs`: read runs and trainings, and process trajectories. */
export { wireRequest } from '../models/wire-request.ts'
export type { PlainError } from '../response.ts'
export { checkTrajectory } from '../trajectory/check.ts'
export { messagesOf, type ToolCall, toolCalls } from '../trajectory/conversation.ts'
export { digestOf } from '../trajectory/digest.ts'
export type { Rewarded as RewardedTrajectory } from '../trajectory/rewards.ts'
export { moveRewards, type PlacedRewards, rewardsOnTokens } from '../trajectory/rewards.ts'
export type { SeedStep, SeedTrajectory } from '../trajectory/seed-shape.ts'
export { type TokenRow, type TokenRows, type TokenSpan, tokenRows } from '../trajectory/token-rows.ts'
export { Trajectory } from '../trajectory/trajectory.ts'
export type { FoundRun } from './find-run.ts'
export type { AnsweredTask, BriefResponse, TrajectoriesOptions } from './run-file.ts'
export { RunFile, type SeenResponse } from './run-file.ts'
export type { ResponseRow, RowsOptions, RunRows, StepRow, TaskRow } from './run-rows.ts'
export type { SettingChange } from './settings-changes.ts'
export type { SettingsPart } from './settings-parts.ts'
export type { SeenStep, StepTail } from './step-tail.ts'
export type { RunOverview, StoredAttempt, StoredTask, UnfinishedAttempt } from './stored-task.ts'
export type { FoundTraining } from './trainings/find-training.ts'
export { listTrainings, StoredTraining } from './trainings/stored-training.ts'
export type { TrainingOverview } from './trainings/training-overview.ts'
export type {
  At as WrittenAt,
  EvalRow,
  EvaluatedSplit,
  Member,
  PlanRow,
  UpdateRow,
  VersionRow,
} from './trainings/training-rows.ts'
