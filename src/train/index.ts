export { moveRewards } from '../trajectory/rewards.ts'
export type { AdvantageSettings, Normalizer } from './advantage-settings.ts'
export {
  type GroupAdvantages,
  type GrpoSettings,
  grpo,
  minusBaseline,
  minusBatchMean,
  nextRunningMean,
  type RunningMean,
  rloo,
} from './advantages.ts'
export type { AlarmSettings } from './alarms.ts'
export type { Algorithm } from './algorithm.ts'
export type { ExperienceBufferOptions } from './buffer-options.ts'
export type { BufferStats } from './buffer-stats.ts'
export type { Experience, ExperienceGroup } from './experience.ts'
export { ExperienceBuffer } from './experience-buffer.ts'
export type { FailedPolicy } from './failed-rollouts.ts'
export { gradientLearner } from './gradient-learner.ts'
export type {
  Batch,
  GradientCore,
  Learner,
  LearnerGroup,
  LearnerStart,
  Metrics,
  Published,
} from './learner.ts'
export {
  type LearnerReference,
  type LearnerThread,
  type LearnerThreadOptions,
  runLearnerInThread,
} from './learner-thread.ts'
export type { LossSettings } from './loss-settings.ts'
export { type ExecutorConfig, ParallelTaskExecutor } from './parallel-task-executor.ts'
export { loadPolicy, type ServedPolicy, savePolicy } from './policy-folder.ts'
export { type Gae, type GaeSettings, gae, returns } from './returns.ts'
export { RLTrainer, type TrainerOptions, type TrainReport } from './rl-trainer.ts'
export { compareRollouts, type RolloutPlace } from './rollout-order.ts'
export type { ActionRow, Row, TokenRow } from './row.ts'
export type { Feature, SoftmaxOptions } from './softmax/settings.ts'
export { type SoftmaxCoreOptions, softmaxCore } from './softmax/softmax-core.ts'
export {
  type OpenSoftmaxPolicy,
  type SoftmaxPolicy,
  type SoftmaxQuestion,
  softmaxPolicy,
} from './softmax/softmax-policy.ts'
