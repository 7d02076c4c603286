import type { EnvironmentContext, EnvironmentTask, Maybe } from './environment.ts'

/** A tool call, as an action. */
export interface ToolCall {
  readonly tool: string
  readonly arguments: Readonly<Record<string, unknown>>
}

/** The context of a tool call. */
export interface ToolContext<State = unknown> extends EnvironmentContext {
  readonly task: EnvironmentTask
  /** The state of the episode. */
  readonly state: State
}

/** Does the work of a tool. An error that it throws becomes an observation; it does not end the episode. */
export type ToolFunction<State = unknown> = {
  // A method, so that a tool may declare the arguments it expects. They come from a model or a policy, so it should check them.
  run(args: Readonly<Record<string, unknown>>, ctx: ToolContext<State>): Maybe<unknown>
}['run']

/** A tool with a description for prompts. */
export interface DescribedTool<State = unknown> {
  readonly description: string
  readonly run: ToolFunction<State>
}

export type Tools<State = unknown> = Readonly<Record<string, ToolFunction<State> | DescribedTool<State>>>

/** A completed call and its result. */
export type ToolOutcome<T = Tools> = {
  readonly [Name in keyof T]: {
    readonly tool: Name
    readonly arguments: Readonly<Record<string, unknown>>
    readonly result: ResultOf<T[Name]>
  }
}[keyof T]

export type ResultOf<Tool> = Tool extends (...args: never) => infer Result
  ? Awaited<Result>
  : Tool extends { readonly run: (...args: never) => infer Result }
    ? Awaited<Result>
    : unknown

/** What a policy sees of a failed call if observations are not texts. */
export interface ToolFailure {
  readonly error: string
}
