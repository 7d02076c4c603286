import { hash } from 'node:crypto'
import type { Message, ModelStep, StepTokens } from '../../trajectory/step.ts'

/** The number of alternating conversations of one agent: its own, a judge's, a few side questions. */
const MAX_STEPS = 16
const MAX_REPLIES = 256
const LONG_CHARS = 128

interface Known {
  readonly step: number
  /** The branch of the step; undefined: the agent's main branch. */
  readonly branch: number | undefined
  /** Fingerprints of the messages of the request and the reply. */
  readonly marks: readonly string[]
  /** The token ids of the prompt and the completion. */
  readonly ids: Int32Array | undefined
}

/** The tokens of an earlier step, for the first messages of a request. */
export interface CarriedTokens {
  readonly step: number
  readonly messages: number
  readonly ids: Int32Array
}

/**
 * Relates an agent's model calls to each other. Each call sends the whole conversation again; its step stores only what
 * is new, and refers to an earlier step for the rest.
 */
export class Conversations {
  readonly #known: Known[] = []
  readonly #answered = new Set<string>()
  readonly #replies = new Map<string, { readonly step: number; readonly message: Message }>()

  /** The earlier step with the longest common prefix, and the messages this request adds to it. */
  place(messages: readonly Message[]): Pick<ModelStep['request'], 'from' | 'keep' | 'added'> {
    const marks = marksOf(messages)
    let best: Known | undefined
    let keep = 0
    for (const known of this.#known) {
      const shared = sharedStart(known.marks, marks)
      // Among equals the later one, because it is closer to what follows.
      if (shared > 0 && shared >= keep) [best, keep] = [known, shared]
    }
    return { from: best?.step ?? null, keep, added: messages.slice(keep) }
  }

  /** The latest step that these messages continue, including its reply. */
  #continued(messages: readonly Message[]): Known | undefined {
    const marks = marksOf(messages)
    return this.#known.findLast((known) => sharedStart(known.marks, marks) === known.marks.length)
  }

  /**
   * The step that these messages continue, with the token ids of its prompt and completion: a server that accepts them
   * tokenizes only what follows.
   */
  carried(messages: readonly Message[]): CarriedTokens | undefined {
    const known = this.#continued(messages)
    return known?.ids && { step: known.step, messages: known.marks.length, ids: known.ids }
  }

  /**
   * The branch of a call: that of the conversation it continues; undefined: the agent's main branch. If the server
   * tokenized the earlier messages differently than before, what was sampled then is not part of this conversation: a
   * new branch begins, made by `open`.
   */
  branchOf(
    messages: readonly Message[],
    tokens: StepTokens | null,
    open: (from: number | undefined, step: number) => number,
  ): number | undefined {
    const before = this.#continued(messages)
    if (before === undefined) return undefined
    const isKnown = before.ids !== undefined && tokens !== null && !tokens.promptUnknown
    return isKnown && tokens.from !== before.step && !this.#isAlike(tokens, before)
      ? open(before.branch, before.step)
      : before.branch
  }

  /** Two steps may have identical tokens. */
  #isAlike({ from }: StepTokens, { ids }: Known): boolean {
    const found = this.#known.find(({ step }) => step === from)?.ids
    return found !== undefined && found.length === ids!.length && startsWith(found, ids!)
  }

  /** The branch of a step; undefined: the agent's main branch. */
  branchOfStep(step: number): number | undefined {
    return this.#known.find((known) => known.step === step)?.branch
  }

  /** Token ids relative to the earlier step whose prompt and completion they start with. */
  placeTokens(tokens: StepTokens): StepTokens {
    if (tokens.promptUnknown) return tokens
    let best: Known | undefined
    for (const known of this.#known)
      if (known.ids && known.ids.length > (best?.ids?.length ?? 0) && startsWith(tokens.tail, known.ids)) best = known
    return best ? { ...tokens, from: best.step, tail: tokens.tail.slice(best.ids!.length) } : tokens
  }

  /** `tokens` must include the whole prompt. */
  remember(
    step: number,
    messages: readonly Message[],
    reply: Message,
    tokens: StepTokens | null,
    branch?: number,
  ): void {
    const marks = [...marksOf(messages), markOf(reply)]
    const ids = tokens && !tokens.promptUnknown ? joined(tokens.tail, tokens.completion) : undefined
    this.#known.push({ step, branch, marks, ids })
    if (this.#known.length > MAX_STEPS) this.#known.shift()
    for (const { id } of reply.calls ?? []) this.#replies.set(id, { step, message: reply })
    while (this.#replies.size > MAX_REPLIES) this.#replies.delete(this.#replies.keys().next().value!)
  }

  /** Marks the result of a call as recorded. False if it already was. */
  answered(callId: string): boolean {
    if (this.#answered.has(callId)) return false
    this.#answered.add(callId)
    return true
  }

  /** The reply that contains a call, and its step. */
  asked(callId: string): { readonly step: number; readonly message: Message } | undefined {
    return this.#replies.get(callId)
  }
}

/**
 * By context. Stored under a symbol on globalThis, because an agent's bundle may contain another copy of this package.
 */
const all = shared()

function shared(): WeakMap<object, Conversations> {
  const holder = globalThis as unknown as Record<symbol, WeakMap<object, Conversations> | undefined>
  return (holder[Symbol.for('manyworlds.conversations')] ??= new WeakMap())
}

export function conversationsOf(ctx: object): Conversations {
  let found = all.get(ctx)
  if (found === undefined) all.set(ctx, (found = new Conversations()))
  return found
}

/** Cached, because the fingerprints of a request are needed several times. */
const marksOfRequests = new WeakMap<readonly Message[], readonly string[]>()

function marksOf(messages: readonly Message[]): readonly string[] {
  let marks = marksOfRequests.get(messages)
  if (marks === undefined) marksOfRequests.set(messages, (marks = messages.map(markOf)))
  return marks
}

/**
 * Equal for equal messages. Long messages are hashed, because large conversations in many tasks would fill the memory.
 */
function markOf(message: Message): string {
  const text = JSON.stringify(message)
  return text.length > LONG_CHARS ? hash('sha256', text, 'base64') : text
}

function sharedStart(a: readonly string[], b: readonly string[]): number {
  const most = Math.min(a.length, b.length)
  let count = 0
  while (count < most && a[count] === b[count]) count++
  return count
}

const startsWith = (ids: Int32Array, start: Int32Array): boolean =>
  ids.length >= start.length && start.every((id, index) => ids[index] === id)

function joined(a: Int32Array, b: Int32Array): Int32Array {
  const all = new Int32Array(a.length + b.length)
  all.set(a)
  all.set(b, a.length)
  return all
}
