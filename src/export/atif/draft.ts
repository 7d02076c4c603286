import { toLossless } from '../../trajectory/lossless-json.ts'
import type { Message } from '../../trajectory/step.ts'
import { atifContent, objectIn, textOf } from './content.ts'
import type { AtifAgent, AtifCall, AtifResult, AtifStep, AtifTrajectory, Extra } from './document.ts'
import { ATIF_VERSION } from './document.ts'
import { finalMetrics } from './metrics.ts'

/** A step that is being written: its results come after the call. */
export interface DraftStep {
  readonly fields: Omit<AtifStep, 'step_id' | 'observation'>
  readonly results: AtifResult[]
}

/** A document of one conversation that is being written. */
export class Draft {
  readonly id: string
  readonly agent: string
  extra: Extra
  /** The last model step, and its number of messages, including its reply. */
  last: { readonly step: number; readonly messages: number } | undefined
  model: string | undefined
  tools: readonly object[] | undefined
  readonly #steps: DraftStep[] = []
  readonly #calls = new Map<string, DraftStep>()

  constructor(id: string, agent: string, extra: Extra) {
    this.id = id
    this.agent = agent
    this.extra = extra
  }

  get isEmpty(): boolean {
    return this.#steps.length === 0
  }

  add(fields: DraftStep['fields']): DraftStep {
    const step = { fields, results: [] }
    this.#steps.push(step)
    for (const { tool_call_id: id } of fields.tool_calls ?? []) this.#calls.set(id, step)
    return step
  }

  /** Adds a message of a request. `copied`: it is also in an earlier document. */
  hear(message: Message, copied: boolean): void {
    const { role, callId } = message
    if (role === 'tool') return this.#result(callId, message)
    const source = role === 'assistant' ? 'agent' : role
    // A message of the assistant that no model generated here is context too.
    const context = copied || role === 'assistant'
    this.add({
      source,
      ...said(message),
      ...(role === 'assistant' && spoken(message)),
      ...(context && { is_copied_context: true }),
    })
  }

  /** Adds a tool result. What the model saw replaces what the tool returned. */
  #result(callId: string | undefined, message: Message): void {
    const { message: content, extra } = said(message)
    const asked = callId === undefined ? undefined : this.#calls.get(callId)
    const result = { content, ...(extra && { extra }) }
    if (asked === undefined) {
      this.add({ source: 'system', message: '' }).results.push(result)
      return
    }
    const place = asked.results.findIndex(({ source_call_id: id }) => id === callId)
    const known = place < 0 ? {} : asked.results[place]!
    const whole = { source_call_id: callId!, ...known, ...result }
    if (place < 0) asked.results.push(whole)
    else asked.results[place] = whole
  }

  finished(session: string | null, version: string): AtifTrajectory {
    const steps = this.#steps.map(({ fields, results }, place): AtifStep => {
      const { source, ...rest } = fields
      return { step_id: place + 1, source, ...rest, ...(results.length > 0 && { observation: { results } }) }
    })
    const agent: AtifAgent = {
      ...{ name: this.agent, version },
      ...(this.model !== undefined && { model_name: this.model }),
      ...(this.tools && { tool_definitions: this.tools }),
    }
    return {
      schema_version: ATIF_VERSION,
      ...(session !== null && { session_id: session }),
      ...{ trajectory_id: this.id, agent, steps, final_metrics: finalMetrics(steps), extra: this.extra },
    }
  }
}

/** The text of a message. Content that ATIF cannot represent is JSON in the text, and unchanged in `extra`. */
export function said({ content }: Pick<Message, 'content'>): Pick<AtifStep, 'message' | 'extra'> {
  const message = atifContent(content)
  return message === undefined ? { message: textOf(content), extra: { content: toLossless(content) } } : { message }
}

/** The fields that only messages of an agent have: reasoning and calls. */
export const spoken = ({ reasoning, calls }: Message): Pick<AtifStep, 'reasoning_content' | 'tool_calls'> => ({
  ...(reasoning !== undefined && { reasoning_content: reasoning }),
  ...(calls && calls.length > 0 && { tool_calls: calls.map(atifCall) }),
})

/** Converts a call. Arguments that are not a JSON object become an empty one, and stay unchanged in `extra`. */
export function atifCall({ id, name, raw }: NonNullable<Message['calls']>[number]): AtifCall {
  const value = objectIn(raw)
  const call = { tool_call_id: id, function_name: name, arguments: value ?? {} }
  return value === undefined ? { ...call, extra: { raw_arguments: raw } } : call
}
