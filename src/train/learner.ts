import type { Maybe } from '../agents/environment.ts'
import type { Policy, PolicyRef } from '../agents/policy.ts'
import type { Outcome } from '../grade/outcome.ts'
import type { ModelsConfig } from '../models/settings.ts'
import type { Trajectory } from '../trajectory/trajectory.ts'
import type { Usage } from '../trajectory/usage.ts'
import type { LossSettings } from './loss-settings.ts'
import type { Row } from './row.ts'

/** Numbers about an update, by name. All of them are finite. */
export type Metrics = Readonly<Record<string, number>>

/** The part of a learner that has weights and knows their gradient. */
export interface GradientCore {
  /** The name of the policy whose weights these are. */
  readonly policy: string
  /** Log-probabilities of what was done: one per row of an action, one per token of a row of tokens. */
  forward(
    rows: readonly Row[],
    of: 'current' | 'reference',
  ): Promise<{ logProbs: Float64Array[]; values?: Float64Array }>
  /** What the value head expects of the rest of an episode, by observation; left out: there is none. */
  values?(observations: readonly unknown[]): Promise<Float64Array>
  /** Adds the gradient of these rows to what was added since the last step. Resolves to metrics of all of them. */
  forwardBackward(rows: readonly Row[], loss: LossSettings): Promise<Metrics>
  /** Moves the weights along the gradient, and begins the next one. A gradient that is not finite moves nothing, and throws. */
  optimStep(options: { readonly lr: number; readonly clipNorm?: number }): Promise<Metrics>
  /** What `open` of the policy reads. */
  weights(): Maybe<Uint8Array>
  /** All that the next step depends on: the weights and the optimizer. */
  state(): Maybe<Uint8Array>
  /** Goes on from a state. A gradient that was begun is dropped. */
  load(state: Uint8Array): Maybe<void>
  /** True: the process that has its weights died. `load` starts another one. */
  readonly ended?: boolean
  [Symbol.asyncDispose]?(): PromiseLike<void>
}

/** Rollouts of one task by one version of a policy, which are compared with each other. */
export interface LearnerGroup {
  readonly id: string
  readonly ref: PolicyRef
  readonly members: readonly Trajectory[]
  /** What the task was given. */
  readonly input?: unknown
}

/** What an update learns from: rows for learners of weights, groups for those who read what happened. */
export interface Batch {
  readonly rows: readonly Row[]
  readonly groups?: readonly LearnerGroup[]
  /** The number of the update. */
  readonly update?: number
  /** Asks a model of the training. */
  readonly ask?: Ask
}

/**
 * Asks a model of the training: as a run of its own, so that the answer is limited, paid for and stored like all others, and after a crash is there again.
 * One question per update.
 */
export type Ask = (question: Question) => Promise<Answered>

export interface Question {
  /** Its name in `models`. */
  readonly model: string
  readonly prompt: string
  readonly temperature?: number
  readonly maxTokens?: number
}

export interface Answered {
  /** Null: the call failed, for the reason in `error`. */
  readonly text: string | null
  readonly error?: string
  readonly usage: Usage
}

/** What a learner asks for that chooses itself what to learn from. */
export type Want =
  | {
      /** Episodes of these training tasks, by a version that is kept, to learn from. */
      readonly kind: 'collect'
      /** The epoch that they belong to, from 1: a larger number ends the one before. */
      readonly epoch: number
      readonly version: number
      readonly tasks: readonly string[]
      /** An earlier update: its tasks had the same chances, so that two versions can be compared. */
      readonly seedOf?: number
      /** Episodes that may still come, these included, without those of the test. */
      readonly left?: number
    }
  /** The validation tasks by this version. Their outcomes come with `validated`. */
  | { readonly kind: 'validate'; readonly version: number }
  | { readonly kind: 'finished'; readonly why: string }

/** What a learner that chooses itself knows of its training. */
export interface LearnerTraining {
  readonly policy: Policy
  /** The names of the models that the agent calls, as far as it says so. */
  readonly calls: readonly string[]
  readonly models: ModelsConfig
  /** Ids of tasks. */
  readonly train: readonly string[]
  readonly validation: readonly string[]
  /** How often a task is run: for learning, and in validation. */
  readonly rollouts: { readonly train: number; readonly validation: number }
  /** Episodes of the test at the end. */
  readonly testEpisodes: number
  /** Says something to whoever watches. */
  notice(line: string): void
}

/** A version of a policy, and its bytes: the driver has them put where workers find them. */
export interface Published {
  readonly ref: PolicyRef
  /** Null: the version is found elsewhere, or is its code alone. */
  readonly bytes: Uint8Array | null
}

/** Where a learner begins. */
export interface LearnerStart {
  /** Of the training; the same seed and the same batches give the same versions. */
  readonly seed: number | string
  /** What `save` gave; left out: it begins with version 0. */
  readonly state?: Uint8Array
  /** For learners that choose themselves. */
  readonly training?: LearnerTraining
}

/**
 * What makes a policy better. The driver calls one method at a time. A method that throws leaves the learner as it was, so that
 * the last good version stays.
 */
export interface Learner {
  start(options: LearnerStart): Promise<Published>
  /** What the policy expects of episodes that were cut short, from their last observations on; only advantages by 'gae' ask. */
  values?(observations: readonly unknown[]): Promise<Float64Array>
  /** Makes the next version. An empty batch changes nothing, and makes none. */
  update(batch: Batch): Promise<Metrics>
  /** The version as it is now. A version never changes: the same number always has the same bytes. */
  publish(): Promise<Published>
  /** Nobody acts by this version any more. */
  retire(ref: PolicyRef): Promise<void>
  /** All that the next update depends on. */
  save(): Promise<Uint8Array>
  /** Goes on from what `save` gave: the next update is the same, bit for bit. */
  load(state: Uint8Array): Promise<void>
  /** True: it died, and what it has learned since it was saved is lost. It goes on with `start` and a state. */
  readonly ended?: boolean
  /**
   * Of learners that choose themselves what to learn from: what to do next. It changes nothing, so that it gives the same until `update` or `validated` was
   * called. `save` is called after updates: after a crash, `validated` comes again with the same outcomes.
   */
  want?(): Want
  /** What came of the validation tasks, one outcome per rollout. */
  validated?(validation: { readonly version: number; readonly outcomes: readonly Outcome[] }): void
  /** Before anything starts: throws what is wrong, and returns, as plain data, what else its versions depend on. A training goes on only with the same. */
  prepare?(training: Omit<LearnerTraining, 'notice'>): unknown
  [Symbol.asyncDispose]?(): PromiseLike<void>
}
