import type { Context } from '../agent.ts'
import { TaskError } from '../errors.ts'
import { type Ending, endEpisode } from '../trajectory/episode.ts'
import { RECORDED, recordStep } from '../trajectory/record.ts'
import type { ActionStep, PolicyVersion } from '../trajectory/step.ts'
import {
  type AnyReset,
  type AnyStep,
  type CheckedChoice,
  checkChoice,
  checkReset,
  checkStep,
  fault,
} from './check-results.ts'
import type { Environment, EnvironmentContext, Maybe } from './environment.ts'
import { EpisodeContext } from './episode-context.ts'
import { EpisodeAborted, EpisodeDeadline, isPromise, within } from './episode-deadline.ts'
import type { Choice, PolicyMode, Question } from './policy.ts'
import { snapshot } from './snapshot.ts'
import { claimState } from './state-owners.ts'
import { StepQuestion } from './step-question.ts'
import { ToolCalls } from './tool-calls.ts'

/** Everything that an episode needs. */
export interface EpisodePlan {
  readonly agent: string
  readonly environment: Environment
  /** What chooses actions, for messages: "policy 'random'". */
  readonly chooser: string
  choose(question: Question, ctx: EnvironmentContext): Maybe<unknown>
  /** Reads the result of `choose`. */
  read(answer: unknown): Choice
  /** Null if the agent's own `act` chooses. */
  readonly policy: PolicyVersion | null
  readonly mode: PolicyMode
  readonly maxSteps: number
  readonly timeoutMs: number | null
}

/** How long to wait for `close`. */
const CLOSE_MS = 5000

/**
 * Runs one episode: reset, then choose and step until it is done or runs out of steps or time, then close. The episode is
 * one promise: synchronous environments and policies are not awaited.
 */
export class EpisodeRun {
  readonly #plan: EpisodePlan
  readonly #ctx: Context
  readonly #deadline: EpisodeDeadline
  readonly #own: EpisodeContext
  readonly #tools: ToolCalls | undefined
  #observation: unknown
  #candidates: readonly unknown[] | undefined
  #reward = 0
  #success: boolean | null = null

  constructor(plan: EpisodePlan, input: unknown, ctx: Context) {
    this.#plan = plan
    this.#ctx = ctx
    this.#deadline = new EpisodeDeadline(ctx, plan.timeoutMs)
    this.#own = new EpisodeContext(ctx, input, this.#deadline)
    const { tools } = plan.environment
    if (tools !== undefined) this.#tools = new ToolCalls(tools, this.#own.task.tools, ctx, this.#deadline)
  }

  /** Resolves to the last observation, which is the answer of the agent. */
  async run(): Promise<unknown> {
    try {
      await this.#reset()
      let ending: Ending
      try {
        ending = await this.#steps()
      } finally {
        this.#deadline.end()
        // Take a copy, because `close` may clear the state that the observation refers to.
        this.#observation = snapshot(this.#observation)
        const closing = this.#close(this.#own.state)
        if (closing) await closing
      }
      const finalObservation = this.#observation
      endEpisode(this.#ctx, { ending, finalObservation, reward: this.#reward, success: this.#success })
      return finalObservation
    } finally {
      this.#deadline.end()
    }
  }

  async #reset(): Promise<void> {
    const { environment, agent, timeoutMs } = this.#plan
    const { task } = this.#own
    const started = environment.reset(task, this.#own)
    let result: AnyReset
    try {
      result = isPromise(started) ? await this.#deadline.wait(started) : started
    } catch (error) {
      if (!(error instanceof EpisodeAborted)) throw error
      // If `reset` finishes late, nobody else closes its state.
      void Promise.resolve(started).then(
        (late) => this.#close(late.state),
        () => {},
      )
      throw error.by === 'task'
        ? error
        : fault(
            `reset of environment '${environment.name}' took longer than the timeoutMs of agent '${agent}' (${timeoutMs} ms)`,
          )
    }
    checkReset(result, environment.name)
    claimState(result.state, environment.name, task.id)
    this.#own.state = result.state
    this.#observation = result.observation
    this.#candidates = result.candidates
  }

  async #steps(): Promise<Ending> {
    try {
      for (let step = 0; step < this.#plan.maxSteps; step++) {
        const resting = this.#deadline.check()
        if (resting) await resting
        // Take copies: `step` may change the objects that the policy saw, and they are recorded after it.
        const observation = snapshot(this.#observation)
        const candidates = snapshot(this.#candidates)
        const asked = this.#ask(step)
        const choice = this.#read(isPromise(asked) ? await this.#deadline.wait(asked) : asked, candidates, step)
        const action = choice.index === undefined ? snapshot(choice.action) : candidates![choice.index]
        const calling = this.#tools?.make(choice.action, this.#own)
        const call = isPromise(calling) ? await calling : calling
        let result: AnyStep
        if (call && 'failure' in call) result = this.#unanswered(call.failure)
        else {
          this.#own.call = call?.outcome
          const stepped = this.#plan.environment.step(this.#own.state, choice.action, this.#own)
          result = isPromise(stepped) ? await this.#deadline.wait(stepped) : stepped
          checkStep(result, this.#plan.environment.name, step)
        }
        const stored = this.#record(step, observation, candidates, action, choice, result)
        this.#take(result)
        if (result.done || result.truncated === true) return endingOf(result)
        if (stored !== RECORDED) await this.#deadline.wait(stored)
      }
    } catch (error) {
      if (!(error instanceof EpisodeAborted) || error.by === 'task') throw error
      return { kind: 'truncated', by: 'timeout' }
    }
    return { kind: 'truncated', by: 'maxSteps' }
  }

  #ask(step: number): Maybe<unknown> {
    if (this.#candidates?.length === 0)
      throw fault(
        `environment '${this.#plan.environment.name}' returned an empty list of candidates for step ${step}, but is not done; leave \`candidates\` out if any action is allowed`,
      )
    const question = new StepQuestion(this.#observation, this.#candidates, this.#plan.mode, step, this.#own)
    return this.#plan.choose(question, this.#own)
  }

  #read(answer: unknown, candidates: readonly unknown[] | undefined, step: number): CheckedChoice {
    return checkChoice(this.#plan.read(answer), candidates, this.#plan.chooser, step)
  }

  /** Makes an observation of a failed call. The state of the environment does not change. */
  #unanswered(failure: string): AnyStep {
    const observation = typeof this.#observation === 'string' ? failure : { error: failure }
    return { observation, reward: 0, done: false, ...(this.#candidates && { candidates: this.#candidates }) }
  }

  #record(
    step: number,
    observation: unknown,
    candidates: readonly unknown[] | undefined,
    action: unknown,
    { index, logProb, value }: CheckedChoice,
    { reward, rewards }: AnyStep,
  ): Promise<void> {
    const content: ActionStep = {
      kind: 'action',
      observation,
      ...(candidates && { candidates }),
      action,
      ...(index !== undefined && { choice: index }),
      logProb,
      ...(value !== undefined && { value }),
      mode: this.#plan.mode,
      policy: this.#plan.policy,
      reward,
      ...(rewards && { rewards }),
    }
    try {
      return recordStep(this.#ctx, content)
    } catch (error) {
      const { name } = this.#plan.environment
      throw new TaskError(
        'ENVIRONMENT_FAULT',
        `cannot record step ${step} of environment '${name}': observations, candidates and actions must be plain data; ${(error as Error).message}`,
        { cause: error },
      )
    }
  }

  #take(result: AnyStep): void {
    if (result.state !== undefined) this.#own.state = result.state
    this.#observation = result.observation
    this.#candidates = result.candidates
    this.#reward += result.reward
    this.#success = result.success ?? null
  }

  /** Closes a state, once. The episode is over, so an error here does not change it; it is written to the log of the task. */
  #close(state: unknown): Promise<void> | undefined {
    const { environment } = this.#plan
    if (environment.close === undefined) return undefined
    const say = (what: string) => this.#ctx.log(`close of environment '${environment.name}' ${what}`)
    try {
      const closing = environment.close(state)
      if (!isPromise(closing)) return undefined
      const failed = closing.then(undefined, (error: unknown) => say(`failed: ${String(error)}`))
      return within(failed, CLOSE_MS, () =>
        say(`did not finish within ${CLOSE_MS} ms; the episode does not wait for it`),
      )
    } catch (error) {
      say(`failed: ${String(error)}`)
      return undefined
    }
  }
}

function endingOf({ truncated }: AnyStep): Ending {
  if (truncated === true) return { kind: 'truncated', by: 'environment' }
  return truncated === 'unknown' ? { kind: 'unknown' } : { kind: 'terminated' }
}
