// Graders are also exported here, for modules that define agents and environments.
export { defineGrader } from '../grade/grader.ts'
export { exactMatch } from '../grade/graders/exact-match.ts'
export { gaiaMatch } from '../grade/graders/gaia-match.ts'
export { includes } from '../grade/graders/includes.ts'
export { json } from '../grade/graders/json.ts'
export { numeric } from '../grade/graders/numeric.ts'
export { regex } from '../grade/graders/regex.ts'
export { weighted } from '../grade/graders/weighted.ts'
export type { Maybe as MaybePromise, NoTools, Plain as PlainValue, Seen as SeenByPolicy } from './environment.ts'
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
export type { LlmTool, LlmTools } from './llm/recorded-tools.ts'
export { type LlmAgentOptions, type LlmAgentParams, llmAgent, type OutputSpec } from './llm-agent.ts'
export { formatAction, type ParsedAction, parseAction } from './parse-action.ts'
export type {
  Choice,
  OpenPolicy,
  Policy,
  PolicyHost,
  PolicyLearning,
  PolicyMode,
  PolicyRef,
  PolicyServer,
  PolicyServing,
  Question,
  ServedVersion,
} from './policy.ts'
export { fixedPolicy, randomPolicy } from './simple-policies.ts'
export type { Chosen as ChosenAction, StepAgentBase } from './step-agent.ts'
export { type Act, type StepAgentOptions, type StepAgentParams, stepAgent } from './step-agent.ts'
export type { Instructed as InstructedTask } from './to-prompt.ts'
export { toPrompt } from './to-prompt.ts'
export type {
  DescribedTool,
  ResultOf as ToolResultOf,
  ToolCall,
  ToolContext,
  ToolFailure,
  ToolFunction,
  ToolOutcome,
  Tools,
} from './tools.ts'
export type {
  GymnasiumOptions,
  GymnasiumTask,
  GymnasiumWorld,
  WorldDescription,
  WorldSpace,
} from './worlds/gymnasium.ts'
export { type OpenEnvOptions, type OpenEnvTask, openEnv } from './worlds/openenv.ts'
export type { PythonWorldOptions } from './worlds/python-options.ts'
export { pythonWorld } from './worlds/python-world.ts'
export type { ReasoningGymOptions, ReasoningGymTask } from './worlds/reasoning-gym.ts'
export { type ReasoningGymTasksOptions, reasoningGymTasks } from './worlds/reasoning-gym-tasks.ts'
