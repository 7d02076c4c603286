import { messagesOf } from '../trajectory/conversation.ts'
import type { Message, ModelStep, Step, ToolStep } from '../trajectory/step.ts'

type Model = Step & ModelStep

/** Compares the contents of two messages. */
type IsSame = (one: unknown, other: unknown) => boolean

/**
 * Relations between the steps of a trajectory, which must be well-formed. `isSame` is a parameter, because the viewer's
 * page has no `node:util`.
 */
export class Talk {
  readonly #steps: readonly Step[]
  readonly #isSame: IsSame
  readonly #byIndex = new Map<number, Step>()
  /** For each model step: the step that it continues, or else the previous one in its branch. */
  readonly #before = new Map<Model, Model>()
  /** For each model step: its number of messages, including its reply. */
  readonly #messages = new Map<Model, number>()
  /** Tool steps, by the step and position of their call. */
  readonly #tools = new Map<string, ToolStep>()
  /** Messages with results of calls, by step and call id. */
  readonly #told = new Map<string, Message>()

  constructor(steps: readonly Step[], isSame: IsSame) {
    this.#steps = steps
    this.#isSame = isSame
    const last = new Map<number, Model>()
    for (const step of steps) {
      this.#byIndex.set(step.index, step)
      if (step.kind === 'tool' && step.call !== null) this.#tools.set(`${step.call.step}.${step.call.position}`, step)
      if (step.kind !== 'model') continue
      const { from, keep, added } = step.request
      const earlier = from === null ? undefined : this.#byIndex.get(from)
      const before = earlier?.kind === 'model' ? earlier : last.get(step.branch ?? 0)
      if (before) this.#before.set(step, before)
      this.#messages.set(step, (from === null ? 0 : keep) + added.length + 1)
      for (const message of added)
        if (before && isAnswerTo(before, message)) this.#told.set(`${before.index}.${message.callId}`, message)
      last.set(step.branch ?? 0, step)
    }
  }

  /** The tool step of a call that a model made. */
  toolOf({ index }: Model, position: number): ToolStep | undefined {
    return this.#tools.get(`${index}.${position}`)
  }

  /** The message with the result of a call, for calls without a tool step. */
  toldOf({ index }: Model, callId: string): Message | undefined {
    return this.#told.get(`${index}.${callId}`)
  }

  /** The messages of a request that were not shown before, and a remark about the others. */
  newMessages(step: Model): { readonly messages: readonly Message[]; readonly remark: string } {
    const { from, keep, added } = step.request
    const before = this.#before.get(step)
    if (before === undefined) return { messages: added, remark: '' }
    const isNew = (message: Message) => !isAnswerTo(before, message) && !isReply(before, message, this.#isSame)
    if (from === null) {
      const same = commonStart(messagesOf(this.#steps, before), added, this.#isSame)
      const remark = same > 0 ? `the first ${same} messages as in step ${before.index}` : 'a new conversation'
      return { messages: added.slice(same).filter(isNew), remark }
    }
    const known = this.#messages.get(before) ?? keep
    // One message less if the client sent the reply again in a different form.
    const isCut = keep < known - (added.some((message) => isReply(before, message, this.#isSame)) ? 1 : 0)
    const remark = isCut ? `continues after the first ${keep} of the ${known} messages of step ${from}` : ''
    return { messages: added.filter(isNew), remark }
  }

  /** The tools that the model could call, if they are not the same as before. */
  newTools(step: Model): string | undefined {
    const { tools } = step.request
    return tools === '' || tools === this.#before.get(step)?.request.tools ? undefined : tools
  }
}

const isAnswerTo = ({ reply }: ModelStep, { role, callId }: Message): boolean =>
  role === 'tool' && callId !== undefined && (reply.calls ?? []).some(({ id }) => id === callId)

/** Whether a message is the reply of a step. Clients send replies back, some with differently formatted arguments. */
function isReply({ reply }: ModelStep, message: Message, isSame: IsSame): boolean {
  if (message.role !== 'assistant') return false
  const ids = ({ calls = [] }: Message) => calls.map(({ id }) => id).join('\n')
  return ids(reply) === ids(message) && (ids(reply) !== '' || sameContent(reply, message, isSame))
}

function commonStart(known: readonly Message[], added: readonly Message[], isSame: IsSame): number {
  let same = 0
  while (same < known.length && same < added.length && sameMessage(known[same]!, added[same]!, isSame)) same++
  return same
}

const sameMessage = (one: Message, other: Message, isSame: IsSame): boolean =>
  one.role === other.role && one.callId === other.callId && sameContent(one, other, isSame)

const sameContent = ({ content: one }: Message, { content: other }: Message, isSame: IsSame): boolean =>
  isSame(one ?? null, other ?? null)
