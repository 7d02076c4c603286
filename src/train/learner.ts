import type { Maybe } from '../agents/environment.ts'
import type { PolicyRef } from '../agents/policy.ts'
import type { Trajectory } from '../trajectory/trajectory.ts'
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
}

/** What an update learns from: rows for learners of weights, groups for those who read what happened. */
export interface Batch {
  readonly rows: readonly Row[]
  readonly groups?: readonly LearnerGroup[]
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
  [Symbol.asyncDispose]?(): PromiseLike<void>
}
