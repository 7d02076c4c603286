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
export { formatAction, type ParsedAction, parseAction } from './parse-action.ts'
export { toPrompt } from './to-prompt.ts'
export type { DescribedTool, ToolCall, ToolContext, ToolFailure, ToolFunction, ToolOutcome, Tools } from './tools.ts'
