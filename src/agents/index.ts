export {
  defineEnvironment,
  type Environment,
  type EnvironmentContext,
  type EnvironmentDefinition,
  type EnvironmentTask,
  type ResetResult,
  type StepContext,
  type StepResult,
} from './environment.ts'
export type { DescribedTool, ToolCall, ToolContext, ToolFailure, ToolFunction, ToolOutcome, Tools } from './tools.ts'
