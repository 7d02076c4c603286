export { moveRewards } from '../trajectory/rewards.ts'
export type { AdvantageSettings, Normalize as NormalizeSetting, Normalizer } from './advantage-settings.ts'
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
export type { Added as AddedAs, BufferStats } from './buffer-stats.ts'
export type { ReturnsOf } from './decisions.ts'
export type { Experience, ExperienceGroup } from './experience.ts'
export { ExperienceBuffer } from './experience-buffer.ts'
export type { FailedPolicy } from './failed-rollouts.ts'
export { gradientLearner } from './gradient-learner.ts'
export type {
  Answered,
  Ask,
  Batch,
  GradientCore,
  Learner,
  LearnerGroup,
  LearnerHost,
  LearnerStart,
  LearnerTraining,
  Metrics,
  Published,
  Question as LearnerQuestion,
  Want,
} from './learner.ts'
export type { LearnerLimits, LearnerReference, RunningLearner } from './learner-calls.ts'
export { type LearnerProcess, runLearnerInProcess } from './learner-process.ts'
export { runLearnerInThread } from './learner-thread.ts'
export type { LoraCore } from './lora/lora-core.ts'
export { type LoraCoreOptions, loraCore } from './lora/lora-core.ts'
export { type LoraPolicy, type LoraPolicyOptions, lora } from './lora/lora-policy.ts'
export type { AdapterDialect, AdapterServerOptions } from './lora/served/adapter-server.ts'
export { type ServedElsewhere, sglang, vllm } from './lora/served/servers.ts'
export type { LoraBase, LoraOptimizer, LoraOptions, LoraSettings } from './lora/settings.ts'
export type {
  Computing as LoraComputing,
  Sidecar as LoraSidecar,
  SidecarOptions as LoraSidecarOptions,
} from './lora/sidecar.ts'
export type { LossName, LossSettings } from './loss-settings.ts'
export type { NeuralCore } from './neural/neural-core.ts'
export { type NeuralCoreOptions, neuralCore } from './neural/neural-core.ts'
export {
  type NeuralPolicy,
  type NeuralQuestion,
  neuralPolicy,
  type OpenNeuralPolicy,
} from './neural/neural-policy.ts'
export type { NeuralInputs, NeuralOptions, NeuralSettings } from './neural/settings.ts'
export type { AdvantageRule } from './open-group.ts'
export { type ExecutorConfig, ParallelTaskExecutor } from './parallel-task-executor.ts'
export type { EpochReport, TestReport } from './pipeline/epoch-report.ts'
export type { ObserveTraining, TrainingGoal, TrainingObserver, TrainingStart } from './pipeline/observer.ts'
export type {
  EvaluateOptions,
  NotForTrainings,
  PipelineOptions,
  TrainingAlgorithm,
  TrainingTasks,
} from './pipeline/options.ts'
export { DistributedTrainingPipeline } from './pipeline/pipeline.ts'
export type { TrainingResult } from './pipeline/result.ts'
export type { Trainable } from './pipeline/trainable.ts'
export type {
  EvalRow as TrainingEvalRow,
  EvaluationFigures,
  Figure as TrainingFigure,
  UpdateReport,
  UpdateRow as TrainingUpdateRow,
} from './pipeline/training-record.ts'
export { loadPolicy, type ServedPolicy, savePolicy, type TrainedPolicy } from './policy-folder.ts'
export { type PromptLearner, promptLearner } from './prompts/prompt-learner.ts'
export type { PromptBudget, PromptLearnerOptions } from './prompts/prompt-options.ts'
export { type OpenTextPolicy, type TextPolicy, type TextPolicyOptions, textPolicy } from './prompts/text-policy.ts'
export type { Texts } from './prompts/texts.ts'
export { type Gae, type GaeSettings, gae, returns } from './returns.ts'
export { type DropReasons, RLTrainer, type Staleness, type TrainerOptions, type TrainReport } from './rl-trainer.ts'
export { compareRollouts, type RolloutPlace } from './rollout-order.ts'
export type { ActionRow, Row, TokenRow } from './row.ts'
export { type OpenSinks, openSinks } from './sinks/open-sinks.ts'
export type { TrainingAbout, TrainingSink } from './sinks/sink.ts'
export { type SinkSetting, sinkOf } from './sinks/sink-of.ts'
export { tensorboard } from './sinks/tensorboard.ts'
export type { Feature, SoftmaxOptions, SoftmaxSettings } from './softmax/settings.ts'
export type { SoftmaxCore } from './softmax/softmax-core.ts'
export { type SoftmaxCoreOptions, softmaxCore } from './softmax/softmax-core.ts'
export {
  type OpenSoftmaxPolicy,
  type SoftmaxPolicy,
  type SoftmaxQuestion,
  softmaxPolicy,
} from './softmax/softmax-policy.ts'
export type { AlgorithmKey as SweepAlgorithmKey, OptionKey as SweepOptionKey, SweepGrid } from './sweep/grid.ts'
export type { PointSummary, SweepResult, SweepSummary } from './sweep/summary.ts'
export type { Sweep } from './sweep/sweep.ts'
export type { RolloutTask, RolloutTasks } from './task-notes.ts'
export { type TinkerWeights, tinkerWeights } from './tinker/checkpoint.ts'
export { type TinkerSampleRequest, type TinkerSampler, tinkerSampler } from './tinker/sampler.ts'
export type { TinkerOptions } from './tinker/settings.ts'
export type { TinkerCore } from './tinker/tinker-core.ts'
export { tinkerCore } from './tinker/tinker-core.ts'
export { tinkerLearner } from './tinker/tinker-learner.ts'
export type { TinkerSample } from './tinker/wire.ts'
export type { TrajectoryStream } from './trajectory-stream.ts'
