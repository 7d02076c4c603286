import type { BranchParent } from '../../trajectory/branches.ts'
import type { Message, ModelStep, Step, StepContent, StepTokens, ToolStep } from '../../trajectory/step.ts'
import type { Usage } from '../../trajectory/usage.ts'
import { changesTo } from './changes.ts'
import { wireContent } from './content.ts'
import type { AtifMetrics, AtifStep, AtifTrajectory } from './document.ts'
import { callFields, noteOf } from './imported.ts'
import { promptIds } from './metrics.ts'

/** The steps of a document that passed `checkAtif`, with those of its sub-agents in branches. */
export function stepsOfDocument(document: AtifTrajectory): Step[] {
  const reader = new Reader()
  reader.take(document, 0, undefined)
  return reader.steps
}

/** The last model call of a document. */
interface LastCall {
  readonly step: Step & ModelStep
  readonly messages: number
}

class Reader {
  readonly steps: Step[] = []
  #branches = 1

  take(document: AtifTrajectory, branch: number, parent: BranchParent | undefined): void {
    const { steps, subagent_trajectories: inside = [], ...fields } = document
    const opens = parent ? { opens: [{ id: branch, agent: document.agent.name, parent }] } : {}
    this.#add({ ...noteOf({ document: fields }), ...opens }, branch)
    const referred = this.#conversation(document, steps, branch)
    for (const sub of inside) {
      const step = referred.get(sub.trajectory_id!) ?? null
      this.take(sub, this.#branches++, { branch, step, why: 'subtask' })
    }
  }

  #add<Content extends StepContent>(content: Content, branch: number): Content & Step {
    const place = { index: this.steps.length, atMs: 0, ...(branch > 0 && { branch }) }
    const step = { ...place, ...content } as Content & Step
    this.steps.push(step)
    return step
  }

  /** Adds the steps of a document. Returns the steps that reference documents of sub-agents. */
  #conversation({ agent }: AtifTrajectory, steps: readonly AtifStep[], branch: number): Map<string, number> {
    const referred = new Map<string, number>()
    const tools = agent.tool_definitions ? JSON.stringify(agent.tool_definitions) : ''
    let last: LastCall | undefined
    let added: Message[] = []
    for (const { step_id: _, ...step } of steps) {
      if (isCall(step)) {
        const call = this.#call(step, { branch, tools, model: agent.model_name, last, added })
        last = { step: call, messages: (last?.messages ?? 0) + added.length + 1 }
        added = []
      } else {
        this.#add(noteOf({ step }), branch)
        // Actions of code without a model are not part of the conversation.
        if (step.source !== 'agent') added.push({ role: step.source, content: wireContent(step.message) })
        else if (step.is_copied_context) added.push(replyOf(step))
      }
      if (step.source === 'agent' && (isCall(step) || step.is_copied_context)) added.push(...resultsOf(step))
      for (const { subagent_trajectory_ref: refs = [] } of step.observation?.results ?? [])
        for (const { trajectory_id: id } of refs) if (id !== undefined) referred.set(id, this.#lastOf(last, branch))
    }
    return referred
  }

  /** The parent step of a branch: the last call of the parent branch or, before the first call, its last step. */
  #lastOf(last: LastCall | undefined, branch: number): number {
    return last?.step.index ?? this.steps.findLast((step) => (step.branch ?? 0) === branch)!.index
  }

  #call(step: Omit<AtifStep, 'step_id'>, around: Around): Step & ModelStep {
    const { branch, tools, model, last, added } = around
    const name = step.model_name ?? model ?? ''
    const temperature = step.metrics?.extra?.temperature
    const call = this.#add<ModelStep>(
      {
        ...{ kind: 'model', role: 'agent', policy: null, server: { model: name } },
        request: { from: last?.step.index ?? null, keep: last?.messages ?? 0, added, tools, wire: '' },
        reply: { ...replyOf(step), wire: '' },
        ...{ finish: finishOf(step), cached: false, tokens: this.#tokens(step.metrics ?? {}, name, last) },
        sampling: {
          ...{ temperature: typeof temperature === 'number' ? temperature : null, topP: null, topK: null, minP: null },
          other: null,
        },
        ...{ ms: 0, retries: 0, ...usageOf(step.metrics ?? {}) },
      },
      branch,
    )
    const results = this.#results(step, call, branch)
    const changes = changesTo(step, callFields(this.steps, call, results, model))
    if (changes) this.#add(noteOf({ call: changes }), branch)
    return call
  }

  /** If the prompt starts with the previous prompt and its completion, only the rest is stored; otherwise the whole prompt. */
  #tokens(metrics: AtifMetrics, tokenizer: string, last: LastCall | undefined): StepTokens | null {
    const { prompt_token_ids: prompt, completion_token_ids: completion, logprobs } = metrics
    if (completion === undefined) return null
    const before = last?.step.tokens && !last.step.tokens.promptUnknown ? promptIds(this.steps, last.step) : undefined
    const start = before && [...before, ...last!.step.tokens!.completion]
    const goesOn =
      start !== undefined &&
      last!.step.tokens!.tokenizer === tokenizer &&
      prompt !== undefined &&
      prompt.length >= start.length &&
      start.every((id, place) => prompt[place] === id)
    return {
      ...{ tokenizer, from: goesOn ? last!.step.index : null },
      tail: Int32Array.from(goesOn ? prompt.slice(start.length) : (prompt ?? [])),
      completion: Int32Array.from(completion),
      logProbs: logprobs ? Float64Array.from(logprobs) : null,
      ...{ of: 'raw', constrained: false },
      ...(prompt === undefined && { promptUnknown: true as const }),
    }
  }

  /** Adds the results of calls, in the order of the document. Only the first result of each call counts. */
  #results(step: Omit<AtifStep, 'step_id'>, call: Step & ModelStep, branch: number): (Step & ToolStep)[] {
    const calls = call.reply.calls ?? []
    const open = new Map(calls.map(({ id }, position) => [id, position]))
    return (step.observation?.results ?? []).flatMap(({ source_call_id: id, content }) => {
      const position = id === undefined ? undefined : open.get(id)
      if (position === undefined) return []
      open.delete(id!)
      const { name, raw } = calls[position]!
      const asked = { step: call.index, position, id: id! }
      const given = { raw, value: step.tool_calls![position]!.arguments }
      const result = content === undefined ? {} : { result: content }
      return [this.#add<ToolStep>({ kind: 'tool', call: asked, name, arguments: given, ...result, ms: 0 }, branch)]
    })
  }
}

interface Around {
  readonly branch: number
  readonly tools: string
  readonly model: string | undefined
  readonly last: LastCall | undefined
  readonly added: readonly Message[]
}

/** Whether the step is a model call: not code alone, and not copied from another trajectory. */
const isCall = ({ source, llm_call_count: calls, is_copied_context: copied }: Omit<AtifStep, 'step_id'>): boolean =>
  source === 'agent' && calls !== 0 && copied !== true

const replyOf = ({ message, reasoning_content: reasoning, tool_calls: calls }: Omit<AtifStep, 'step_id'>): Message => ({
  role: 'assistant',
  content: message === '' && calls && calls.length > 0 ? null : wireContent(message),
  ...(reasoning !== undefined && { reasoning }),
  ...(calls &&
    calls.length > 0 && {
      calls: calls.map(({ tool_call_id: id, function_name: name, arguments: value, extra }) => {
        const own = extra?.raw_arguments
        return { id, name, raw: typeof own === 'string' ? own : JSON.stringify(value) }
      }),
    }),
})

/** The results as messages of the next request. */
function resultsOf({ tool_calls: calls = [], observation }: Omit<AtifStep, 'step_id'>): Message[] {
  const ids = new Set(calls.map(({ tool_call_id: id }) => id))
  return (observation?.results ?? []).flatMap(({ source_call_id: callId, content = '' }): Message[] =>
    callId !== undefined && ids.has(callId) ? [{ role: 'tool', content: wireContent(content), callId }] : [],
  )
}

function finishOf({ extra, tool_calls: calls = [] }: Omit<AtifStep, 'step_id'>): string {
  const finish = extra?.finish_reason
  return typeof finish === 'string' ? finish : calls.length > 0 ? 'tool_calls' : 'stop'
}

function usageOf(metrics: AtifMetrics): { usage?: Usage } {
  const { prompt_tokens, completion_tokens, cached_tokens, cost_usd } = metrics
  const usage: Usage = {
    ...(prompt_tokens !== undefined && { inputTokens: prompt_tokens }),
    ...(completion_tokens !== undefined && { outputTokens: completion_tokens }),
    ...(cached_tokens !== undefined && { cachedTokens: cached_tokens }),
    ...(cost_usd !== undefined && { costUsd: cost_usd }),
  }
  return Object.keys(usage).length === 0 ? {} : { usage }
}
