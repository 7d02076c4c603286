/** Graders, and functions that summarize and compare runs: `manyworlds/grade`. */
export { type Blame, blameFor, type OutcomeStatus } from './blame.ts'
export { type CompareOptions, type Comparison, compareRuns, type Difference, type UsedBy } from './compare.ts'
export {
  type Estimate,
  type EstimateOptions,
  meanReward,
  passRate,
  type RewardOptions,
  successRate,
  type TaskRollouts,
} from './intervals.ts'
export type { Interval, Range } from './mean-interval.ts'
export { type Outcome, outcomeOf, type ResponseLike, type RolloutResult, resultOf } from './outcome.ts'
export { passAtK } from './pass-at-k.ts'
export { type EvaluationSummary, type SummaryOptions, summarizeOutcomes, type UnsolvedTask } from './summarize.ts'
export { atLeast, type ThresholdVerdict, tasksNeeded } from './threshold.ts'
export { describeRate, describeReward } from './words.ts'
