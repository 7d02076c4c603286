import type { ModelSettings } from '../models/settings.ts'
import type { AdvantageSettings } from '../train/advantage-settings.ts'
import type { Algorithm } from '../train/algorithm.ts'
import type { GradientCore } from '../train/learner.ts'
import type { EnvironmentTask, Maybe } from './environment.ts'

/** Which version of a policy acts, and where what it has learned is. Plain data: it travels with the params of an agent. */
export interface PolicyRef {
  /** The name of the policy, whose code is found through the agent. */
  readonly policy: string
  readonly version: number
  /** Of what it has learned; null: the policy is its code alone. */
  readonly digest: string | null
  /** A blob, or the name under which a model is served; null: the policy is its code alone. */
  readonly at: { readonly blob: string } | { readonly served: string; readonly model: string } | null
}

/** What chooses actions. Its code is in the module of the agent; a version of it is opened once in each worker. */
export interface Policy<Observation = unknown, Action = unknown> {
  readonly name: string
  /** Throws what the tasks of this worker then fail with, as `SETUP_FAILED`. */
  open(ref: PolicyRef, host: PolicyHost): Maybe<OpenPolicy<Observation, Action>>
  /** How a training makes it better; left out: it stays as it is, or only a learner of one's own can. */
  readonly learning?: PolicyLearning
  /** Of a policy that is a language model: its name among the run's models. */
  readonly model?: string
  /** Of a policy that is a language model: how a training has its versions served. */
  readonly serving?: PolicyServing
}

/** Has versions of a language model served. It is used by the driver alone. */
export interface PolicyServing {
  /** Finds or starts the server. `notice`: for lines that users should see. */
  start(notice: (line: string) => void): Promise<PolicyServer>
}

/** A server to which versions of a policy can be brought while it runs. */
export interface PolicyServer {
  /** Has it serve a version: what calls of that version need. Called again for a version that is there, it changes nothing. */
  load(version: { readonly ref: PolicyRef; readonly bytes: Uint8Array | null }): Promise<ServedVersion>
  /** Nobody calls this version any more. */
  unload(version: ServedVersion): Promise<void>
  /** Whether the server still has it; left out: it cannot lose one. */
  has?(version: ServedVersion): Promise<boolean>
  close(): Promise<void>
}

/** A version of a language model that can be called. */
export interface ServedVersion {
  readonly at: { readonly served: string; readonly model: string }
  /** For the run's models, under the name of the policy. */
  readonly settings: ModelSettings
}

/** What a training needs to know of a policy. See `manyworlds/train`. */
export interface PolicyLearning {
  /** What has its weights and knows their gradient: a new one, that has learned nothing. Called in the thread that learns. */
  core(): Maybe<GradientCore>
  /** A learning rate with which it usually learns. */
  readonly lr: number
  /** How good its actions were, unless a training says so. Default: compared within groups, by GRPO. */
  readonly advantages?: AdvantageSettings
  /** What goes with these advantages: used where a training names neither them nor something else in its place. */
  readonly algorithm?: Omit<Partial<Algorithm>, 'lr'>
  /** What it needs with any advantages, unless a training says otherwise. */
  readonly defaults?: Omit<Partial<Algorithm>, 'lr'>
}

/** What a policy has of the worker that opens it. */
export interface PolicyHost {
  /** The content of a blob, by its SHA-256. */
  blob(sha256: string): Promise<Uint8Array>
  /** Aborted when the driver closes the connection. */
  readonly signal: AbortSignal
}

/** A version of a policy, ready to act. It serves many episodes at a time, so it remembers nothing of any. */
export interface OpenPolicy<Observation = unknown, Action = unknown> {
  /** Chooses an action. Who needs another kind of policy, a model or a text, finds it under `model` and `text`. */
  act?(question: Question<Observation, Action>): Maybe<Choice<Action>>
  /** The model to call, by its name among the run's models. `carries`: its server takes the token ids of earlier turns as they were. */
  model?(): { readonly name: string; readonly carries?: boolean }
  /** Texts in place of those of the agent: `instructions`, and `tools.NAME` for what a tool is for. */
  readonly text?: Readonly<Record<string, string>>
  /** Called when the driver closes the connection. A worker that is killed or replaced gets no notice. */
  [Symbol.asyncDispose]?(): PromiseLike<void>
}

/** What a policy is asked: all that it may decide by. What it should remember belongs into the observation. */
export interface Question<Observation = unknown, Action = unknown> {
  readonly observation: Observation
  /** The actions to choose from; undefined: the environment does not list them. */
  readonly candidates: readonly Action[] | undefined
  /** `'greedy'`: the best action rather than one drawn by its probability. */
  readonly mode: PolicyMode
  /** Draws from a stream of the policy's own, so that its choices and the world's chances do not depend on each other. */
  readonly random: () => number
  /** The number of the step, from 0. */
  readonly step: number
  readonly task: EnvironmentTask
  /** Aborted when the episode is given up. */
  readonly signal: AbortSignal
}

export type PolicyMode = 'sample' | 'greedy'

/** A chosen action. */
export interface Choice<Action = unknown> {
  readonly action: Action
  /** Its place among the candidates, if the policy knows it; else it is looked for. */
  readonly index?: number
  /** The logarithm of the probability with which it was chosen; null: not known, and nothing can be learned from it by that. */
  readonly logProb: number | null
  /** What the policy expects of the rest of the episode. */
  readonly value?: number
}
