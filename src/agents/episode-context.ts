import type { Context } from '../agent.ts'
import type { EnvironmentTask, StepContext } from './environment.ts'
import type { EpisodeDeadline } from './episode-deadline.ts'
import type { ToolContext, ToolOutcome } from './tools.ts'

/**
 * The `ctx` of one episode: one object for the environment, its tools and the policy, because it is created for every
 * episode. Rarely used properties are looked up on access.
 */
export class EpisodeContext implements StepContext<ToolOutcome | undefined>, ToolContext {
  readonly task: EnvironmentTask
  state: unknown
  call: ToolOutcome | undefined
  readonly #ctx: Context
  readonly #deadline: EpisodeDeadline
  #policyRandom: (() => number) | undefined

  constructor(ctx: Context, input: unknown, deadline: EpisodeDeadline) {
    this.#ctx = ctx
    this.#deadline = deadline
    const { id, tools, metadata } = ctx.task
    this.task = { id, input, ...(tools && { tools }), ...(metadata && { metadata }) }
  }

  get signal(): AbortSignal {
    return this.#deadline.signal
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

  /** The policy's own random stream: its draws do not change those of the environment. */
  get policyRandom(): () => number {
    this.#policyRandom ??= this.#ctx.randomStream('policy')
    return this.#policyRandom
  }
}
