import type { Context } from '../agent.ts'
import { didYouMean } from '../did-you-mean.ts'
import { TaskError } from '../errors.ts'
import { recordStep } from '../trajectory/record.ts'
import type { Maybe } from './environment.ts'
import { EpisodeAborted, type EpisodeDeadline, isPromise } from './episode-deadline.ts'
import { CALL_FORMS, callOf, type ParsedAction, parseAction } from './parse-action.ts'
import { snapshot } from './snapshot.ts'
import type { ToolCall, ToolContext, ToolOutcome, Tools } from './tools.ts'

/** The result of a call: its outcome, or an error text for the policy. */
export type CallResult = { readonly outcome: ToolOutcome } | { readonly failure: string }

/** Limits for error texts and tool names in messages. */
const MAX_ERROR_CHARS = 2000
const MAX_NAME_CHARS = 100

/**
 * The tools of an environment that one task may use. Every call is recorded. If a call fails, its error is a text that
 * the policy gets as its next observation, and the episode continues.
 */
export class ToolCalls {
  readonly #tools: Tools
  readonly #allowed: readonly string[]
  readonly #ctx: Context
  readonly #deadline: EpisodeDeadline

  constructor(tools: Tools, allowed: readonly string[] | undefined, ctx: Context, deadline: EpisodeDeadline) {
    this.#tools = tools
    const names = Object.keys(tools)
    this.#allowed = allowed === undefined ? names : names.filter((name) => allowed.includes(name))
    this.#ctx = ctx
    this.#deadline = deadline
  }

  /** Makes the call that an action requests. Throws `EpisodeAborted`, or an error if the call cannot be recorded. */
  make(action: unknown, toolCtx: ToolContext): Maybe<CallResult> {
    const parsed = typeof action === 'string' ? parseAction(action) : ofData(action)
    if (parsed.kind === 'unreadable') return this.#unreadable(parsed.reason)
    const { tool, arguments: args, raw } = parsed
    const call = new Call(tool, { raw, value: snapshot(args) })
    if (!this.#allowed.includes(tool)) return this.#failed(call, this.#refusal(tool))
    let result: unknown
    try {
      result = runTool(this.#tools[tool]!, args, toolCtx)
    } catch (error) {
      return this.#failed(call, `tool '${tool}' failed: ${textOf(error)}`)
    }
    return isPromise(result) ? this.#later(call, args, result) : this.#done(call, args, result)
  }

  async #later(call: Call, args: ToolCall['arguments'], result: Promise<unknown>): Promise<CallResult> {
    let value: unknown
    try {
      value = await this.#deadline.wait(result)
    } catch (error) {
      if (error instanceof EpisodeAborted) throw error
      return this.#failed(call, `tool '${call.tool}' failed: ${textOf(error)}`)
    }
    return this.#done(call, args, value)
  }

  #done(call: Call, args: ToolCall['arguments'], result: unknown): CallResult {
    this.#record(call, result === undefined ? {} : { result })
    return { outcome: { tool: call.tool, arguments: args, result } }
  }

  #failed(call: Call, failure: string): CallResult {
    this.#record(call, { error: failure })
    return { failure }
  }

  #record({ tool, given, began }: Call, end: { result?: unknown; error?: unknown }): void {
    const ms = Math.round((performance.now() - began) * 1000) / 1000
    try {
      void recordStep(this.#ctx, { kind: 'tool', call: null, name: tool, arguments: given, ...end, ms })
    } catch (error) {
      throw new TaskError(
        'ENVIRONMENT_FAULT',
        `cannot record the call of tool '${tool}': its arguments and its result must be plain data`,
        {
          cause: error,
        },
      )
    }
  }

  #refusal(name: string): string {
    const shown = name.slice(0, MAX_NAME_CHARS)
    const known = Object.hasOwn(this.#tools, name) ? 'is not allowed in this task' : 'does not exist'
    return `tool '${shown}' ${known}; allowed: ${this.#list()}${didYouMean(shown, this.#allowed)}`
  }

  #unreadable(reason: string): CallResult {
    return { failure: `not a tool call: ${reason}; write ${CALL_FORMS}; allowed tools: ${this.#list()}` }
  }

  #list(): string {
    return this.#allowed.join(', ') || 'none'
  }
}

/** A call in progress. */
class Call {
  readonly tool: string
  readonly given: { readonly raw: string; readonly value: unknown }
  readonly began = performance.now()

  constructor(tool: string, given: Call['given']) {
    this.tool = tool
    this.given = given
  }
}

// Call `run` as a method, so that `this` is the object that its author wrote.
const runTool = (tool: Tools[string], args: ToolCall['arguments'], ctx: ToolContext): unknown =>
  typeof tool === 'function' ? tool(args, ctx) : tool.run(args, ctx)

function ofData(action: unknown): ParsedAction {
  const call = callOf(action)
  if (call === undefined) return { kind: 'unreadable', reason: 'it is not an object that names a tool' }
  try {
    return { kind: 'call', ...call, raw: JSON.stringify(call.arguments) }
  } catch (error) {
    return { kind: 'unreadable', reason: `its arguments cannot be serialized as JSON: ${textOf(error)}` }
  }
}

function textOf(error: unknown): string {
  try {
    const text = error instanceof Error ? error.message || error.name : String(error)
    return text.length <= MAX_ERROR_CHARS ? text : `${text.slice(0, MAX_ERROR_CHARS)}…`
  } catch {
    return 'it threw a value that cannot be converted to a string'
  }
}
