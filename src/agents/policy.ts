import type { ModelSettings } from '../models/settings.ts'
import type { AdvantageSettings } from '../train/advantage-settings.ts'
import type { Algorithm } from '../train/algorithm.ts'
import type { GradientCore, LearnerHost } from '../train/learner.ts'
import type { EnvironmentTask, Maybe } from './environment.ts'

/** Identifies the version of a policy, and where its weights are. Plain data: it is part of the params of an agent. */
export interface PolicyRef {
  /** The name of the policy. Its code is found through the agent. */
  readonly policy: string
  readonly version: number
  /** The digest of the weights. Null: the policy has no weights. */
  readonly digest: string | null
  /** A blob, or the name under which a model is served. Null: the policy has no weights. */
  readonly at: { readonly blob: string } | { readonly served: string; readonly model: string } | null
}

/** Chooses actions. Its code is in the module of the agent; each worker opens a version of it once. */
export interface Policy<Observation = unknown, Action = unknown> {
  readonly name: string
  /** If it throws, the tasks of this worker fail with `SETUP_FAILED`. */
  open(ref: PolicyRef, host: PolicyHost): Maybe<OpenPolicy<Observation, Action>>
  /** How a training improves it. Left out: it cannot be trained, except by a learner of your own. */
  readonly learning?: PolicyLearning
  /** If the policy is a language model: its name among the run's models. */
  readonly model?: string
  /** If the policy is a language model: how a training serves its versions. */
  readonly serving?: PolicyServing
}

/** Serves versions of a language model. Used only in the driver. */
export interface PolicyServing {
  /** Finds or starts the server. `notice`: prints a line for the user. */
  start(notice: (line: string) => void): Promise<PolicyServer>
}

/** A server that can load versions of a policy while it runs. */
export interface PolicyServer {
  /** Loads a version and returns what is needed to call it. Does nothing if the version is already loaded. */
  load(version: { readonly ref: PolicyRef; readonly bytes: Uint8Array | null }): Promise<ServedVersion>
  /** Unloads a version that is no longer called. */
  unload(version: ServedVersion): Promise<void>
  /** Whether the server still has the version. Left out: it never loses one. */
  has?(version: ServedVersion): Promise<boolean>
  close(): Promise<void>
}

/** A version of a language model that can be called. */
export interface ServedVersion {
  readonly at: { readonly served: string; readonly model: string }
  /** The settings for the run's models, under the name of the policy. */
  readonly settings: ModelSettings
}

/** How to train a policy. See `manyworlds/train`. */
export interface PolicyLearning {
  /** Creates an untrained core, which holds the weights and computes their gradient. Called in the learner's thread. */
  core(host?: LearnerHost): Maybe<GradientCore>
  /**
   * The KL divergence, in nats per decision, by which sampler and learner may differ because they compute in different
   * ways. A larger one raises an alarm. Default: they use the same code.
   */
  readonly samplerKl?: number
  /** A learning rate that usually works. */
  readonly lr: number
  /** The advantages to use, unless a training sets them. Default: GRPO, which compares within groups. */
  readonly advantages?: AdvantageSettings
  /** Algorithm settings that fit these advantages. Used if a training sets neither the advantages nor the setting itself. */
  readonly algorithm?: Omit<Partial<Algorithm>, 'lr'>
  /** Algorithm settings that fit all advantages, unless a training sets them. */
  readonly defaults?: Omit<Partial<Algorithm>, 'lr'>
}

/** What the worker provides to a policy that it opens. */
export interface PolicyHost {
  /** Returns the content of a blob by its SHA-256. */
  blob(sha256: string): Promise<Uint8Array>
  /** Aborted when the driver closes the connection. */
  readonly signal: AbortSignal
}

/** A version of a policy that is ready to act. It serves many episodes at once, so it must keep no state of an episode. */
export interface OpenPolicy<Observation = unknown, Action = unknown> {
  /** Chooses an action. Policies that are a model or texts have `model` or `text` instead. */
  act?(question: Question<Observation, Action>): Maybe<Choice<Action>>
  /** The model to call, by its name among the run's models. `carries`: the server accepts the exact token ids of earlier turns. */
  model?(): { readonly name: string; readonly carries?: boolean }
  /** Texts that replace those of the agent: `instructions`, and `tools.NAME` for the description of a tool. */
  readonly text?: Readonly<Record<string, string>>
  /** Called when the driver closes the connection. It is not called if the worker is killed or replaced. */
  [Symbol.asyncDispose]?(): PromiseLike<void>
}

/** The input of a decision. A policy keeps no state, so everything it must remember belongs in the observation. */
export interface Question<Observation = unknown, Action = unknown> {
  readonly observation: Observation
  /** The actions to choose from. Undefined: the environment does not list them. */
  readonly candidates: readonly Action[] | undefined
  /** `'greedy'`: choose the best action instead of sampling one. */
  readonly mode: PolicyMode
  /** Draws from the policy's own random stream, which is independent of the environment's. */
  readonly random: () => number
  /** The number of the step, from 0. */
  readonly step: number
  readonly task: EnvironmentTask
  /** Aborted when the episode is cancelled. */
  readonly signal: AbortSignal
}

export type PolicyMode = 'sample' | 'greedy'

/** A chosen action. */
export interface Choice<Action = unknown> {
  readonly action: Action
  /** The index among the candidates, if the policy knows it. Otherwise the action is searched for. */
  readonly index?: number
  /** The logarithm of the probability of the choice. Null: unknown, so policy-gradient methods cannot learn from it. */
  readonly logProb: number | null
  /** The reward that the policy expects from the rest of the episode. */
  readonly value?: number
}
