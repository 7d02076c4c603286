import type { Context } from '../agent.ts'
import type { EnvironmentTask, StepContext } from './environment.ts'
import type { Patience } from './patience.ts'
import type { ToolContext, ToolOutcome } from './tools.ts'

/**
 * What the code of one episode sees as `ctx`: one object for the environment, its tools and the policy, because it is made
 * for every episode. Everything rare is looked up when it is asked for.
 */
export class EpisodeContext implements StepContext<ToolOutcome | undefined>, ToolContext {
  readonly task: EnvironmentTask
  state: unknown
  call: ToolOutcome | undefined
  readonly #ctx: Context
  readonly #patience: Patience
  #policyRandom: (() => number) | undefined

  constructor(ctx: Context, input: unknown, patience: Patience) {
    this.#ctx = ctx
    this.#patience = patience
    const { id, tools, metadata } = ctx.task
    this.task = { id, input, ...(tools && { tools }), ...(metadata && { metadata }) }
  }

  get signal(): AbortSignal {
    return this.#patience.signal
  }

  get attempt(): number {
    return this.#ctx.attempt
  }

  get idempotencyKey(): string {
    return this.#ctx.idempotencyKey
  }

  get log() {
    return this.#ctx.log
  }

  get random() {
    return this.#ctx.random
  }

  get randomStream() {
    return this.#ctx.randomStream
  }

  get ask() {
    return this.#ctx.ask
  }

  get askStream() {
    return this.#ctx.askStream
  }

  get model() {
    return this.#ctx.model
  }

  get generate() {
    return this.#ctx.generate
  }

  get complete() {
    return this.#ctx.complete
  }

  get limit() {
    return this.#ctx.limit
  }

  get once() {
    return this.#ctx.once
  }

  /** The policy's own numbers: what it draws does not change what the environment draws. */
  get policyRandom(): () => number {
    this.#policyRandom ??= this.#ctx.randomStream('policy')
    return this.#policyRandom
  }
}
