import type { Maybe } from '../agents/environment.ts'
import type { Policy, PolicyRef } from '../agents/policy.ts'
import type { Outcome } from '../grade/outcome.ts'
import type { ModelsConfig } from '../models/settings.ts'
import type { Trajectory } from '../trajectory/trajectory.ts'
import type { Usage } from '../trajectory/usage.ts'
import type { LossSettings } from './loss-settings.ts'
import type { Row } from './row.ts'

/** Numbers about an update, by name. All must be finite. */
export type Metrics = Readonly<Record<string, number>>

/** The part of a learner that holds weights and computes their gradient. */
export interface GradientCore {
  /** The name of the policy whose weights these are. */
  readonly policy: string
  /** Log-probabilities of the recorded actions or tokens: one per action row, one per token of a token row. */
  forward(
    rows: readonly Row[],
    of: 'current' | 'reference',
  ): Promise<{ logProbs: Float64Array[]; values?: Float64Array }>
  /** The value head's estimate of the remaining return for each observation; omitted if there is no value head. */
  values?(observations: readonly unknown[]): Promise<Float64Array>
  /** Accumulates the gradient of these rows until the next step. Resolves to metrics over all accumulated rows. */
  forwardBackward(rows: readonly Row[], loss: LossSettings): Promise<Metrics>
  /**
   * Applies the gradient to the weights and clears it. Throws, without changing the weights, if the gradient is not
   * finite.
   */
  optimStep(options: { readonly lr: number; readonly clipNorm?: number }): Promise<Metrics>
  /** The bytes that `open` of the policy reads. */
  weights(): Maybe<Uint8Array>
  /** Everything that the next step depends on: the weights and the optimizer. */
  state(): Maybe<Uint8Array>
  /** Restores a state. An accumulated gradient is dropped. */
  load(state: Uint8Array): Maybe<void>
  /** True: the process that held the weights died. `load` starts another one. */
  readonly ended?: boolean
  [Symbol.asyncDispose]?(): PromiseLike<void>
}

/** Rollouts of one task by one version of a policy, compared with each other. */
export interface LearnerGroup {
  readonly id: string
  readonly ref: PolicyRef
  readonly members: readonly Trajectory[]
  /** The input of the task. */
  readonly input?: unknown
}

/** The data of an update: rows for learners of weights, groups for learners that read trajectories. */
export interface Batch {
  readonly rows: readonly Row[]
  readonly groups?: readonly LearnerGroup[]
  /** The number of the update. */
  readonly update?: number
  /** Asks one of the training's models. */
  readonly ask?: Ask
}

/**
 * Asks one of the training's models. The question is a run of its own, so the answer is rate-limited, counted and
 * stored like any other, and is available again after a crash. One question per update.
 */
export type Ask = (question: Question) => Promise<Answered>

export interface Question {
  /** The model's name in `models`. */
  readonly model: string
  readonly prompt: string
  readonly temperature?: number
  readonly maxTokens?: number
}

export interface Answered {
  /** Null if the call failed; `error` has the reason. */
  readonly text: string | null
  readonly error?: string
  readonly usage: Usage
}

/** The next request of a learner that selects its own training data. */
export type Want =
  | {
      /** Episodes of these training tasks, by a stored version, to learn from. */
      readonly kind: 'collect'
      /** The epoch these episodes belong to, from 1; a larger number ends the previous epoch. */
      readonly epoch: number
      readonly version: number
      readonly tasks: readonly string[]
      /** An earlier update whose random seed is used again, so that two versions can be compared. */
      readonly seedOf?: number
      /** How many more episodes may follow, including these but not those of the test. */
      readonly left?: number
    }
  /** Runs the validation tasks with this version. The outcomes are passed to `validated`. */
  | { readonly kind: 'validate'; readonly version: number }
  | { readonly kind: 'finished'; readonly why: string }

/** What a learner that selects its own training data is told about its training. */
export interface LearnerTraining {
  readonly policy: Policy
  /** The names of the models that the agent calls, if it declares them. */
  readonly calls: readonly string[]
  readonly models: ModelsConfig
  /** Ids of tasks. */
  readonly train: readonly string[]
  readonly validation: readonly string[]
  /** Rollouts per task: for training, and for validation. */
  readonly rollouts: { readonly train: number; readonly validation: number }
  /** Episodes of the final test. */
  readonly testEpisodes: number
  /** Shows a line to observers of the training. */
  notice(line: string): void
}

/** A version of a policy, and its bytes, which the driver makes available to workers. */
export interface Published {
  readonly ref: PolicyRef
  /** Null: the version is stored elsewhere, or consists of its code alone. */
  readonly bytes: Uint8Array | null
}

/** What the thread of a learner provides to the function that makes the learner. */
export interface LearnerHost {
  /** Shows a line to the user, for slow steps such as creating a Python environment. */
  notice(line: string): void
}

/** How a learner starts. */
export interface LearnerStart {
  /** The training's seed; the same seed and batches produce the same versions. */
  readonly seed: number | string
  /** The result of `save`; omitted: start with version 0. */
  readonly state?: Uint8Array
  /** For learners that select their own training data. */
  readonly training?: LearnerTraining
}

/**
 * Improves a policy. The driver calls one method at a time. A method that throws must leave the learner unchanged, so
 * that the last good version is kept.
 */
export interface Learner {
  start(options: LearnerStart): Promise<Published>
  /** The values of the final observations of truncated episodes; required only for advantages by 'gae'. */
  values?(observations: readonly unknown[]): Promise<Float64Array>
  /** Makes the next version. An empty batch changes nothing and makes no version. */
  update(batch: Batch): Promise<Metrics>
  /** The current version. Versions are immutable: the same number always has the same bytes. */
  publish(): Promise<Published>
  /** This version is no longer used for acting. */
  retire(ref: PolicyRef): Promise<void>
  /** Everything that the next update depends on. */
  save(): Promise<Uint8Array>
  /** Restores what `save` returned: the next update is the same, bit for bit. */
  load(state: Uint8Array): Promise<void>
  /**
   * True: the learner died, and everything learned since the last `save` is lost. Call `start` with a state to
   * continue.
   */
  readonly ended?: boolean
  /**
   * For learners that select their own training data: what to do next. It must not change anything, and must return the
   * same until `update` or `validated` is called. `save` is called after updates: after a crash, `validated` is called
   * again with the same outcomes.
   */
  want?(): Want
  /** The results of the validation tasks, one outcome per rollout. */
  validated?(validation: { readonly version: number; readonly outcomes: readonly Outcome[] }): void
  /**
   * Called before anything starts. Throws if the training is invalid; returns, as plain data, whatever else the
   * versions depend on. A training can only be resumed if this is unchanged.
   */
  prepare?(training: Omit<LearnerTraining, 'notice'>): unknown
  [Symbol.asyncDispose]?(): PromiseLike<void>
}
