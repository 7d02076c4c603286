import { hash } from 'node:crypto'
import type { Message, ModelStep, StepTokens } from '../../trajectory/step.ts'

/** Conversations of one agent that may alternate: its own, a judge's, a few side questions. */
const MOST = 16
const MOST_REPLIES = 256
const LONG_CHARS = 128

interface Known {
  readonly step: number
  /** Of the messages of the request and the reply. */
  readonly marks: readonly string[]
  /** Those of the prompt and the completion. */
  readonly ids: Int32Array | undefined
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
    const marks = messages.map(markOf)
    let best: Known | undefined
    let keep = 0
    for (const known of this.#known) {
      const shared = sharedStart(known.marks, marks)
      // Of two alike, the later one: what follows is nearer to it.
      if (shared > 0 && shared >= keep) [best, keep] = [known, shared]
    }
    return { from: best?.step ?? null, keep, added: messages.slice(keep) }
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
  remember(step: number, messages: readonly Message[], reply: Message, tokens: StepTokens | null): void {
    const marks = [...messages, reply].map(markOf)
    const ids = tokens && !tokens.promptUnknown ? joined(tokens.tail, tokens.completion) : undefined
    this.#known.push({ step, marks, ids })
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
