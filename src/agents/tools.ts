import type { EnvironmentContext, EnvironmentTask, Maybe } from './environment.ts'

/** A call of a tool, as an action. */
export interface ToolCall {
  readonly tool: string
  readonly arguments: Readonly<Record<string, unknown>>
}

/** What a tool is given besides its arguments. */
export interface ToolContext<State = unknown> extends EnvironmentContext {
  readonly task: EnvironmentTask
  /** That of the episode. */
  readonly state: State
}

/** Does the work. What it throws is an observation: it does not end the episode. */
export type ToolFunction<State = unknown> = {
  // A method, so that a tool may say which arguments it wants. They come from a model or a policy: it should look at them.
  run(args: Readonly<Record<string, unknown>>, ctx: ToolContext<State>): Maybe<unknown>
}['run']

/** A tool with words about it, for prompts. */
export interface DescribedTool<State = unknown> {
  readonly description: string
  readonly run: ToolFunction<State>
}

export type Tools<State = unknown> = Readonly<Record<string, ToolFunction<State> | DescribedTool<State>>>

/** A call that was made, and what it came to. */
export type ToolOutcome<T = Tools> = {
  readonly [Name in keyof T]: {
    readonly tool: Name
    readonly arguments: Readonly<Record<string, unknown>>
    readonly result: ResultOf<T[Name]>
  }
}[keyof T]

type ResultOf<Tool> = Tool extends (...args: never) => infer Result
  ? Awaited<Result>
  : Tool extends { readonly run: (...args: never) => infer Result }
    ? Awaited<Result>
    : unknown

/** What a policy sees of a call that failed, where observations are not texts. */
export interface ToolFailure {
  readonly error: string
}
