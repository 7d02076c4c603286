/** Graders, and functions that summarize and compare runs: `manyworlds/grade`. */
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
export { passAtK } from './pass-at-k.ts'
