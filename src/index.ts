export {
  type Agent,
  type AgentDefinition,
  type AgentRef,
  type AnswerOf,
  type AskOptions,
  type Context,
  defineAgent,
  type InputOf,
  type SetupContext,
  type TaskInfo,
} from './agent.ts'
export { SharedBlob } from './blobs.ts'
export type { BundleConfig } from './bundle/config.ts'
export type { EngineChoice, StartsLocally } from './engines/choice.ts'
export type {
  BlobContent,
  CodeBundle,
  EngineEvents,
  Placement,
  RuntimeEngine,
  RuntimeEngineClass,
  WorkerExit,
  WorkerInfo,
  WorkerLink,
} from './engines/engine.ts'
export { InlineRuntime } from './engines/inline/inline-runtime.ts'
export { inline } from './engines/inline/options.ts'
export { LocalRuntime } from './engines/local/local-runtime.ts'
export { NodesRuntime } from './engines/nodes/nodes-runtime.ts'
export { type NodesOptions, type NodesTls, nodes } from './engines/nodes/options.ts'
export { type RayOptions, ray } from './engines/ray/options.ts'
export { RayRuntime } from './engines/ray/ray-runtime.ts'
export { type SparkOptions, spark } from './engines/spark/options.ts'
export { SparkRuntime } from './engines/spark/spark-runtime.ts'
export { type ErrorCode, ManyworldsError, TaskError, type TaskErrorCode } from './errors.ts'
export { DistributedExecutor } from './executor/executor.ts'
export { RemoteNodeExecutor, type RemoteNodeExecutorConfig } from './executor/remote-node-executor.ts'
export type { Grade, GradePart, GradingError, GradingErrorCode, TaskGrade } from './grade/grade.ts'
export {
  defineGrader,
  type GradeFunction,
  type GradeLike,
  type Grader,
  type GraderDefinition,
} from './grade/grader.ts'
export type { GradeSample } from './grade/sample.ts'
export type { RateLimit } from './limits.ts'
export { withPrice } from './models/prices.ts'
export { type ActionModel, ParallelizableAgent, SerialableAgent } from './parallel-agent.ts'
export type { StepEvent } from './progress/observer.ts'
export type { FailureGroup, RunProgress, SlowTask } from './progress/run-progress.ts'
export { FatalError, RetryableError } from './retry-errors.ts'
export { EngineName, type OwnEngine, type RunConfig } from './run-config.ts'
export * as Runners from './runners/runners.ts'
export { execTasks } from './runners/runners.ts'
export type { ServiceContext, ServiceDefinition, ServiceFunction } from './services.ts'
export type * from './signature-types.ts'
export { type ResponseOf, Task, type TaskLike, type TaskOptions, type TaskResponse, type TaskStatus } from './task.ts'
export type { Branch, BranchEnd, BranchParent, BranchReason, OpenedBranch } from './trajectory/branches.ts'
export type { Ending, Episode, Truncation } from './trajectory/episode.ts'
export type {
  ActionStep,
  Message,
  ModelStep,
  NoteStep,
  PolicyVersion,
  Sampling,
  Step,
  StepRecord,
  StepTokens,
  ToolStep,
} from './trajectory/step.ts'
export type { Split, Trajectory, TrajectoryEnding, TrajectoryJson, TrajectoryParts } from './trajectory/trajectory.ts'
export type { Usage } from './trajectory/usage.ts'
export { isWorker } from './worker/role.ts'
