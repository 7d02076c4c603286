import { hash } from 'node:crypto'
import type { Message, ModelStep, StepTokens } from '../../trajectory/step.ts'

/** Conversations of one agent that may alternate: its own, a judge's, a few side questions. */
const MOST = 16
const MOST_REPLIES = 256
const LONG_CHARS = 128

interface Known {
  readonly step: number
  /** The branch of the trajectory that the step is in; undefined: the agent's own. */
  readonly branch: number | undefined
  /** Of the messages of the request and the reply. */
  readonly marks: readonly string[]
  /** Those of the prompt and the completion. */
  readonly ids: Int32Array | undefined
}

/** Tokens that an earlier step has, for the first messages of a request. */
export interface CarriedTokens {
  readonly step: number
  readonly messages: number
  readonly ids: Int32Array
}

/**
 * What an agent's model calls have in common. A call sends the whole conversation again; its step has only what is new, and says where
 * the rest is.
 */
export class Conversations {
  readonly #known: Known[] = []
  readonly #answered = new Set<string>()
  readonly #replies = new Map<string, { readonly step: number; readonly message: Message }>()

  /** The earlier step with the longest common beginning, and what this request adds to it. */
  place(messages: readonly Message[]): Pick<ModelStep['request'], 'from' | 'keep' | 'added'> {
    const marks = marksOf(messages)
    let best: Known | undefined
    let keep = 0
    for (const known of this.#known) {
      const shared = sharedStart(known.marks, marks)
      // Of two alike, the later one: what follows is nearer to it.
      if (shared > 0 && shared >= keep) [best, keep] = [known, shared]
    }
    return { from: best?.step ?? null, keep, added: messages.slice(keep) }
  }

  /** The latest step that these messages go on from, its reply included. */
  #continued(messages: readonly Message[]): Known | undefined {
    const marks = marksOf(messages)
    return this.#known.findLast((known) => sharedStart(known.marks, marks) === known.marks.length)
  }

  /** The step that these messages go on from, and the token ids of its prompt and completion: a server that takes them renders only what follows. */
  carried(messages: readonly Message[]): CarriedTokens | undefined {
    const known = this.#continued(messages)
    return known?.ids && { step: known.step, messages: known.marks.length, ids: known.ids }
  }

  /**
   * The branch of a call: that of the conversation it goes on with; undefined: the agent's own. Where the server has made other tokens of
   * the earlier messages than it had before, what was sampled then is not part of this conversation: a branch begins, which `open` gives.
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

  /** Two steps may have the very same tokens. */
  #isAlike({ from }: StepTokens, { ids }: Known): boolean {
    const found = this.#known.find(({ step }) => step === from)?.ids
    return found !== undefined && found.length === ids!.length && startsWith(found, ids!)
  }

  /** The branch that a step is in; undefined: the agent's own. */
  branchOfStep(step: number): number | undefined {
    return this.#known.find((known) => known.step === step)?.branch
  }

  /** Token ids as those of the earlier step whose prompt and completion they begin with, and the rest. */
  placeTokens(tokens: StepTokens): StepTokens {
    if (tokens.promptUnknown) return tokens
    let best: Known | undefined
    for (const known of this.#known)
      if (known.ids && known.ids.length > (best?.ids?.length ?? 0) && startsWith(tokens.tail, known.ids)) best = known
    return best ? { ...tokens, from: best.step, tail: tokens.tail.slice(best.ids!.length) } : tokens
  }

  /** `tokens`: with the whole prompt. */
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
    if (this.#known.length > MOST) this.#known.shift()
    for (const { id } of reply.calls ?? []) this.#replies.set(id, { step, message: reply })
    while (this.#replies.size > MOST_REPLIES) this.#replies.delete(this.#replies.keys().next().value!)
  }

  /** The result of a call was recorded. False: it was before. */
  answered(callId: string): boolean {
    if (this.#answered.has(callId)) return false
    this.#answered.add(callId)
    return true
  }

  /** The reply that asked for a call, and the step it is in. */
  asked(callId: string): { readonly step: number; readonly message: Message } | undefined {
    return this.#replies.get(callId)
  }
}

/** Of each context. By a symbol on globalThis, since an agent's bundle may bring another copy of this package. */
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

/** Those of a request are needed several times. */
const marksOfRequests = new WeakMap<readonly Message[], readonly string[]>()

function marksOf(messages: readonly Message[]): readonly string[] {
  let marks = marksOfRequests.get(messages)
  if (marks === undefined) marksOfRequests.set(messages, (marks = messages.map(markOf)))
  return marks
}

/** Equal for equal messages. Long ones are not kept: conversations of a megabyte, in each of many tasks, would fill the memory. */
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
  ids.length >= start.length && start.every((id, place) => ids[place] === id)

function joined(a: Int32Array, b: Int32Array): Int32Array {
  const all = new Int32Array(a.length + b.length)
  all.set(a)
  all.set(b, a.length)
  return all
}
