import type { OpenedBranch } from './branches.ts'
import type { Episode } from './episode.ts'
import type { Usage } from './usage.ts'

/**
 * A step of a trajectory: a model call, an action in an environment, a tool call, or a note that an agent recorded with
 * `ctx.step()`. Check `kind` first; TypeScript then knows the fields.
 */
export type Step = StepPlace & StepContent

/** What a step records, by its `kind`. */
export type StepContent = ModelStep | ActionStep | ToolStep | NoteStep

export const STEP_KINDS = ['note', 'model', 'action', 'tool'] as const satisfies readonly StepContent['kind'][]

/** The most steps that an attempt may record. Keys in the store depend on it (`store/keys.ts`). */
export const MOST_STEPS = 2 ** 20

/** The position of a step. */
export interface StepPlace {
  /** The position in the trajectory, from 0. */
  readonly index: number
  /** Milliseconds since the attempt started. */
  readonly atMs: number
}

/** What all kinds of steps have. */
export interface StepBase {
  /** The agent of a group that recorded the step. */
  readonly agent?: string
  /** The branch that the step belongs to. Default: 0, that of the task's agent. */
  readonly branch?: number
  /** Branches that start with this step; see `Branch`. */
  readonly opens?: readonly OpenedBranch[]
  /** Declared for every kind, so that code can read them without checking `kind`. Notes and actions have them. */
  readonly action?: unknown
  readonly observation?: unknown
  readonly reward?: number
  readonly usage?: Usage
}

/** The argument of `ctx.step()`. All fields are optional; put anything else under `data`. */
export interface StepRecord {
  action?: unknown
  observation?: unknown
  reward?: number
  usage?: Usage
  text?: string
  data?: unknown
}

/** A step that an agent recorded itself. */
export interface NoteStep extends StepBase {
  readonly kind: 'note'
  readonly text?: string
  readonly data?: unknown
  /** Set if the episode of a sub-agent ends here. The episode of the task's own agent is in its response. */
  readonly ends?: Episode
}

/** The policy that chose an action or made a completion. */
export interface PolicyVersion {
  readonly name: string
  readonly version: number
}

/** A message of a conversation. The arguments of calls are as the model wrote them. */
export interface Message {
  readonly role: 'system' | 'user' | 'assistant' | 'tool'
  readonly content: unknown
  readonly reasoning?: string
  readonly calls?: readonly { readonly id: string; readonly name: string; readonly raw: string }[]
  readonly callId?: string
}

/** One model call, as it was sent and received. */
export interface ModelStep extends StepBase {
  readonly kind: 'model'
  /** The role of the caller. */
  readonly role: 'agent' | 'judge' | 'user'
  readonly policy: PolicyVersion | null
  readonly server: { readonly model: string; readonly id?: string }
  /** The first `keep` messages of step `from`, followed by `added`. */
  readonly request: {
    readonly from: number | null
    readonly keep: number
    readonly added: readonly Message[]
    readonly tools: string
    readonly wire: string
  }
  readonly reply: Message & { readonly wire: string }
  readonly finish: string
  readonly cached: boolean
  readonly tokens: StepTokens | null
  /** Secrets were removed from the step, or from one that it continues: it has no tokens and is not used for training. */
  readonly redacted?: boolean
  readonly sampling: Sampling
  readonly ms: number
  readonly retries: number
}

/** Token ids from the sampler: those of step `from` including its completion, then `tail`, then the sampled ones. */
export interface StepTokens {
  readonly tokenizer: string
  readonly from: number | null
  readonly tail: Int32Array
  readonly completion: Int32Array
  /** One for each id of `completion`; null if the server does not return them. */
  readonly logProbs: Float64Array | null
  readonly of: 'raw' | 'processed'
  /** The server did not return the token ids of the prompt: `tail` is empty, and the step cannot be trained. */
  readonly promptUnknown?: true
  /** Decoding was constrained by a grammar or schema, so the log-probabilities are not those of the model alone. */
  readonly constrained: boolean
}

/** The sampling parameters of the call. Null: not set, so the unknown default of the server applies. */
export interface Sampling {
  readonly temperature: number | null
  readonly topP: number | null
  readonly topK: number | null
  readonly minP: number | null
  readonly seed?: number
  readonly maxTokens?: number
  readonly stop?: readonly string[]
  readonly other: unknown
}

/** One action in an environment. */
export interface ActionStep extends StepBase {
  readonly kind: 'action'
  readonly observation: unknown
  readonly candidates?: readonly unknown[]
  readonly action: unknown
  /** The index of `action` in `candidates`. */
  readonly choice?: number
  readonly logProb: number | null
  readonly value?: number
  readonly mode: 'sample' | 'greedy'
  readonly policy: PolicyVersion | null
  readonly reward: number
  /** The parts of the reward, by name. */
  readonly rewards?: Readonly<Record<string, number>>
}

/** One call of a tool. */
export interface ToolStep extends StepBase {
  readonly kind: 'tool'
  /** The model step that requested the call; null if the agent's own code did. */
  readonly call: { readonly step: number; readonly position: number; readonly id: string } | null
  readonly name: string
  readonly arguments: { readonly raw: string; readonly value?: unknown }
  readonly result?: unknown
  readonly error?: unknown
  readonly ms: number
}
