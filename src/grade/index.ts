/** `manyworlds/grade`: graders, and functions that summarize and compare runs. */
export type { Untrainable, UntrainableCode } from '../trajectory/trainable.ts'
export { type Blame, blameFor, type OutcomeStatus } from './blame.ts'
export type { UsageFigure } from './compare.ts'
export {
  type ComparedApart,
  type CompareOptions,
  type Comparison,
  compareRuns,
  type Difference,
  type UsedBy,
} from './compare.ts'
export type { GaiaTaskOf } from './gaia-tasks.ts'
export { type GaiaOptions, type GaiaTask, gaiaTasks } from './gaia-tasks.ts'
export type { CallerContext } from './grade-here.ts'
export { gradeHere } from './grade-here.ts'
export { defineGrader } from './grader.ts'
export { type ExactMatchOptions, exactMatch } from './graders/exact-match.ts'
export { gaiaMatch } from './graders/gaia-match.ts'
export { type IncludesOptions, includes } from './graders/includes.ts'
export { type JsonOptions, type JsonSchemaOptions, json } from './graders/json.ts'
export { type NumericOptions, numeric } from './graders/numeric.ts'
export { type RegexOptions, regex } from './graders/regex.ts'
export type { PartFunction } from './graders/weighted.ts'
export { type WeightedOptions, type WeightedParts, weighted } from './graders/weighted.ts'
export {
  type Estimate,
  type EstimateOptions,
  meanReward,
  passRate,
  type RewardOptions,
  successRate,
  type TaskRollouts,
} from './intervals.ts'
export {
  type Judged,
  type Judgement,
  judgementOf,
  judgementOfTrajectory,
  type RefusedCall,
  refusedCalls,
} from './judgement.ts'
export type { Interval, Range } from './mean-interval.ts'
export { type Outcome, outcomeOf, type ResponseLike } from './outcome.ts'
export { passAtK } from './pass-at-k.ts'
export type { Tally as CountsByCode } from './summarize.ts'
export {
  type EvaluationSummary,
  type SummaryOptions,
  summarizeOutcomes,
  type UngradedTask,
  type UnsolvedTask,
} from './summarize.ts'
export { atLeast, type ThresholdOptions, type ThresholdVerdict, tasksNeeded } from './threshold.ts'
export { describeRate, describeReward } from './words.ts'
