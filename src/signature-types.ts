/**
 * Types that the signatures of `index.ts` use. Most programs never name them; they are exported so that every signature can be
 * written down.
 */
export type { AnyAgent, NoInput as TaskInput, RunSubTask } from './agent.ts'
export type { BlobSource } from './blobs.ts'
export type { LazyEngine, LoadedEngine } from './engines/lazy-engine.ts'
export type { ShowOutput } from './engines/worker-process.ts'
export type { ModelErrorCode } from './errors.ts'
export type { ExecutorConfig } from './executor/executor.ts'
export type { GradeContext } from './grade/grader.ts'
export type {
  Completed,
  CompleteOptions,
  Generated,
  GeneratedTokens,
  GenerateOptions,
  OutputSchema,
  SamplingOptions,
  StandardResult,
  StandardSchema,
} from './models/generate.ts'
/** The input and output of a language model: messages, parts, tools, usage. */
export type * as LanguageModelTypes from './models/language-model.ts'
export type { GivenModel, LanguageModel } from './models/language-model.ts'
export type { ModelPrice, ModelSettings, ModelsConfig } from './models/settings.ts'
export type {
  Aggregate,
  Chain as AgentChain,
  GroupAgent,
  Last as LastAgent,
  ParallelizableOptions,
  PolicyInfoOf,
  SerialableOptions,
  SharedInput,
  SubResults,
  Unwrapped as UnwrappedResult,
} from './parallel-agent.ts'
export type { ModelQueue, ModelUse } from './progress/run-progress.ts'
export type { GroupParams, SubResult } from './sub-agents.ts'
export type {
  OneOf as OneTaskOf,
  ResponseBase as TaskResponseBase,
  TaskFor,
  TaskIterable,
  TasksFor,
  WorkerName,
} from './task.ts'
export type { Json as LosslessJson } from './trajectory/lossless-json.ts'
export type { StepBase, StepContent, StepPlace } from './trajectory/step.ts'
export type { TrajectoryError } from './trajectory/trajectory.ts'
