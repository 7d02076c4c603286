import type { OpenedBranch } from './branches.ts'
import type { Episode } from './episode.ts'
import type { Usage } from './usage.ts'

/**
 * A step of a trajectory: a model call, an action in an environment, a tool call, or a note that an agent recorded with
 * `ctx.step()`. Check `kind` first; TypeScript then knows the fields.
 */
export type Step = StepPlace & StepContent

export type StepContent = ModelStep | ActionStep | ToolStep | NoteStep

export const STEP_KINDS = ['note', 'model', 'action', 'tool'] as const satisfies readonly StepContent['kind'][]

/** The most steps that an attempt may record. Keys in the store depend on it (`store/keys.ts`). */
export const MOST_STEPS = 2 ** 20

/** Where a step stands. */
export interface StepPlace {
  /** Place in the trajectory, from 0. */
  readonly index: number
  /** Milliseconds since the attempt started. */
  readonly atMs: number
}

interface StepBase {
  /** The agent of a group that recorded it. */
  readonly agent?: string
  /** The branch of the trajectory that the step belongs to; left out: the task's own. */
  readonly branch?: number
  /** Branches that begin with this step, which is the first of them; see `Branch`. */
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
  /** The episode of a sub-agent ends here; that of the task's own agent is with its response. */
  readonly ends?: Episode
}

/** Which policy chose an action or gave a completion. */
export interface PolicyVersion {
  readonly name: string
  readonly version: number
}

/** A message of a conversation, with the arguments of calls as the model wrote them. */
export interface Message {
  readonly role: 'system' | 'user' | 'assistant' | 'tool'
  readonly content: unknown
  readonly reasoning?: string
  readonly calls?: readonly { readonly id: string; readonly name: string; readonly raw: string }[]
  readonly callId?: string
}

/** One call of a model, as it went over the wire. */
export interface ModelStep extends StepBase {
  readonly kind: 'model'
  /** Who called. */
  readonly role: 'agent' | 'judge' | 'user'
  readonly policy: PolicyVersion | null
  readonly server: { readonly model: string; readonly id?: string }
  /** The first `keep` messages of step `from`, and then those that were added. */
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
  /** Secrets were removed from it, or from a step that it continues: it has no tokens, and is not for training. */
  readonly redacted?: boolean
  readonly sampling: Sampling
  readonly ms: number
  readonly retries: number
}

/** Token ids as the sampler had them: those of step `from` with its completion, then `tail`, then what was sampled. */
export interface StepTokens {
  readonly tokenizer: string
  readonly from: number | null
  readonly tail: Int32Array
  readonly completion: Int32Array
  /** One for each id of `completion`; null if the server does not return them. */
  readonly logProbs: Float64Array | null
  readonly of: 'raw' | 'processed'
  /** The server did not say which ids its prompt had: `tail` is empty, and the step cannot be trained. */
  readonly promptUnknown?: true
  /** Decoding was constrained by a grammar or schema, so the log-probabilities are not those of the model alone. */
  readonly constrained: boolean
}

/** What the call asked for. Null: nothing, so the server's default holds, which nobody knows. */
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
