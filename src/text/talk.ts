import { messagesOf } from '../trajectory/conversation.ts'
import type { Message, ModelStep, Step, ToolStep } from '../trajectory/step.ts'

type Model = Step & ModelStep

/** Whether two contents of messages are the same. */
type IsSame = (one: unknown, other: unknown) => boolean

/**
 * What the steps of a trajectory have to do with each other. All of them are well-formed. `isSame` is given, because the viewer's
 * page has no `node:util`.
 */
export class Talk {
  readonly #steps: readonly Step[]
  readonly #isSame: IsSame
  readonly #byIndex = new Map<number, Step>()
  /** Of each model step: the one that it goes on from, or else the one before it in its branch. */
  readonly #before = new Map<Model, Model>()
  /** Of each model step, how many messages it has, its reply included. */
  readonly #messages = new Map<Model, number>()
  /** Steps of tools, by the place of the call. */
  readonly #tools = new Map<string, ToolStep>()
  /** What models were told of calls, by step and id. */
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

  /** The step of a tool that a call of a model led to. */
  toolOf({ index }: Model, position: number): ToolStep | undefined {
    return this.#tools.get(`${index}.${position}`)
  }

  /** What the model was told of a call, where no step of a tool says it. */
  toldOf({ index }: Model, callId: string): Message | undefined {
    return this.#told.get(`${index}.${callId}`)
  }

  /** The messages of a request that were not shown before, and what is to be said about the others. */
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
    // One message less: the reply comes again, in other words.
    const isCut = keep < known - (added.some((message) => isReply(before, message, this.#isSame)) ? 1 : 0)
    const remark = isCut ? `goes on after the first ${keep} of the ${known} messages of step ${from}` : ''
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

/** Clients send replies again, some with the arguments of calls written in another way. */
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
