import { isGraded, judgementOfTrajectory } from '../../grade/judgement.ts'
import { ownPackage } from '../../own-package.ts'
import type { Branch } from '../../trajectory/branches.ts'
import { messagesOf } from '../../trajectory/conversation.ts'
import { toLossless } from '../../trajectory/lossless-json.ts'
import type { ActionStep, ModelStep, NoteStep, Step, ToolStep } from '../../trajectory/step.ts'
import type { Trajectory } from '../../trajectory/trajectory.ts'
import { objectIn, objectsIn, textOf } from './content.ts'
import type { AtifTrajectory, Extra } from './document.ts'
import { Draft, type DraftStep, said, spoken } from './draft.ts'
import { importedDocument, isImported } from './imported.ts'
import { given, metricsOf } from './metrics.ts'

export type { AtifTrajectory } from './document.ts'

/**
 * Converts a trajectory to an ATIF document. The conversation of the task's agent is the document; every other conversation (of
 * sub-agents and sub-tasks, of a judge, after a compaction) is in its `subagent_trajectories`. Throws if a value cannot be
 * represented in JSON.
 */
export const toAtif = (trajectory: Trajectory): AtifTrajectory =>
  isImported(trajectory) ? importedDocument(trajectory) : new Writer(trajectory).write()

class Writer {
  readonly #trajectory: Trajectory
  readonly #branches: ReadonlyMap<number, Branch>
  readonly #nextActions: ReadonlyMap<number, ActionStep>
  /** For each branch: the document for steps that belong to no conversation. */
  readonly #main = new Map<number, Draft>()
  readonly #others: Draft[] = []
  /** For each model step: its document and its step there. */
  readonly #written = new Map<number, { readonly draft: Draft; readonly step: DraftStep }>()

  constructor(trajectory: Trajectory) {
    this.#trajectory = trajectory
    this.#branches = new Map(trajectory.branches.map((branch) => [branch.id, branch]))
    this.#nextActions = nextActions(trajectory.steps)
    this.#main.set(0, new Draft(trajectory.id, trajectory.agent, rootExtra(trajectory)))
  }

  write(): AtifTrajectory {
    const { steps, run, input } = this.#trajectory
    for (const step of steps) this.#step(step)
    const root = this.#main.get(0)!
    // A document needs at least one step, but the agents of a group may have taken all.
    if (root.isEmpty) root.add({ source: 'user', message: textOf(input) })
    this.#refer()
    const { version } = ownPackage
    const others = this.#others.map((draft) => draft.finished(run, version))
    return { ...root.finished(run, version), ...(others.length > 0 && { subagent_trajectories: others }) }
  }

  #step(step: Step): void {
    switch (step.kind) {
      case 'model':
        return this.#model(step)
      case 'tool':
        return this.#tool(step)
      case 'action':
        return this.#action(step)
      case 'note':
        return this.#note(step)
      default:
        step satisfies never
    }
  }

  #model(step: Step & ModelStep): void {
    const { index, request, reply, server, role, finish, policy, redacted, reward } = step
    const messages = messagesOf(this.#trajectory.steps, step)
    const { draft, heard } = this.#conversation(step)
    for (const [place, message] of messages.slice(0, -1).entries())
      if (place >= heard) draft.hear(message, request.from !== null && place < request.keep)
    draft.model ??= server.model
    const tools = objectsIn(request.tools)
    draft.tools ??= tools
    const otherTools = tools && JSON.stringify(tools) !== JSON.stringify(draft.tools) ? tools : undefined
    const { message, extra } = said(reply)
    const written = draft.add({
      ...{ source: 'agent', message, model_name: server.model, ...spoken(reply) },
      ...{ metrics: metricsOf(this.#trajectory.steps, step), llm_call_count: 1 },
      extra: {
        ...{ ...extra, finish_reason: finish },
        ...given({ reward, policy, redacted, tool_definitions: otherTools }),
        ...(role !== 'agent' && { role }),
      },
    })
    draft.last = { step: index, messages: messages.length }
    this.#written.set(index, { draft, step: written })
  }

  /** The document that a call continues, and how many of its messages are already there. */
  #conversation({ request, role, branch: own = 0 }: Step & ModelStep): { draft: Draft; heard: number } {
    const branch = this.#conversationOf(own)
    const { from, keep } = request
    const earlier = from === null ? undefined : this.#written.get(from)?.draft
    if (earlier?.last?.step === from && earlier.last?.messages === keep && this.#isOf(earlier, branch))
      return { draft: earlier, heard: keep }
    const main = this.#mainOf(branch)
    if (role === 'agent' && from === null && main.last === undefined) return { draft: main, heard: 0 }
    const why = role !== 'agent' ? role : from === null ? 'another conversation' : 'a conversation that was changed'
    return { draft: this.#open(this.#branches.get(branch)?.agent ?? this.#trajectory.agent, { branch, why }), heard: 0 }
  }

  /** A branch because of token drift is still the same conversation: each step has the tokens of its own prompt. */
  #conversationOf(branch: number): number {
    let at = branch
    for (
      let { parent } = this.#branches.get(at) ?? {};
      parent?.why === 'drift';
      parent = this.#branches.get(at)?.parent
    )
      at = parent.branch
    return at
  }

  #isOf(draft: Draft, branch: number): boolean {
    const { manyworlds } = draft.extra as { manyworlds?: { branch?: number } }
    return (manyworlds?.branch ?? 0) === branch
  }

  #mainOf(branch: number): Draft {
    const known = this.#main.get(branch)
    if (known) return known
    const { agent = this.#trajectory.agent, parent, task, end } = this.#branches.get(branch) ?? {}
    const rewarded = given({ reward: end?.reward, success: end?.success })
    const draft = this.#open(agent, { branch, ...given({ why: parent?.why, parent, task, end }) }, rewarded)
    this.#main.set(branch, draft)
    return draft
  }

  #open(agent: string, about: object, more: Extra = {}): Draft {
    const id = `${this.#trajectory.id}#${this.#others.length + 1}`
    const draft = new Draft(id, agent, { ...more, manyworlds: toLossless(about) })
    this.#others.push(draft)
    return draft
  }

  #tool({ index, call, name, arguments: given_, result, error, reward, branch = 0 }: Step & ToolStep): void {
    const failed = error === undefined ? {} : { error: toLossless(error) }
    const extra = { ...failed, ...given({ reward }) }
    const content = error === undefined ? textOf(result) : errorText(error)
    const more = Object.keys(extra).length > 0 && { extra }
    const asked = call && this.#written.get(call.step)
    if (asked) {
      asked.step.results.push({ source_call_id: call.id, content, ...more })
      return
    }
    // The agent's own code made the call.
    const id = call?.id ?? `call-${index}`
    const value = objectIn(given_.raw)
    const made = { tool_call_id: id, function_name: name, arguments: value ?? {} }
    const calls = [value ? made : { ...made, extra: { raw_arguments: given_.raw } }]
    const draft = this.#mainOf(this.#conversationOf(branch))
    const step = draft.add({ source: 'agent', message: '', tool_calls: calls, llm_call_count: 0 })
    step.results.push({ source_call_id: id, content, ...more })
  }

  /** The observation before the first action is a message of the user; after that, each action has its result. */
  #action(step: Step & ActionStep): void {
    const { index, atMs: _, kind: __, branch = 0, observation, action, usage: ___, opens: ____, ...about } = step
    const draft = this.#mainOf(branch)
    if (draft.isEmpty) draft.add({ source: 'user', message: textOf(observation) })
    const extra = { reward: step.reward, action: toLossless(action), manyworlds: toLossless(about) }
    const written = draft.add({ source: 'agent', message: textOf(action), llm_call_count: 0, extra })
    const next = this.#seenAfter(index, branch)
    if (next) written.results.push({ content: textOf(next.seen) })
  }

  #seenAfter(index: number, branch: number): { seen: unknown } | undefined {
    const next = this.#nextActions.get(index)
    if (next) return { seen: next.observation }
    const end = branch === 0 ? this.#trajectory : this.#branches.get(branch)?.end
    return end && 'finalObservation' in end ? { seen: end.finalObservation } : undefined
  }

  #note({ branch = 0, text = '', action, observation, reward, data, ends }: Step & NoteStep): void {
    const about = Object.entries({ action, data, ends }).filter(([, value]) => value !== undefined)
    const extra = { ...given({ reward }), ...Object.fromEntries(about.map(([key, value]) => [key, toLossless(value)])) }
    const step = this.#mainOf(branch).add({
      ...{ source: 'agent', message: text, llm_call_count: 0 },
      ...(Object.keys(extra).length > 0 && { extra }),
    })
    if (observation !== undefined) step.results.push({ content: textOf(observation) })
  }

  /** Adds references from the parent steps of branches to their documents. */
  #refer(): void {
    for (const { id, parent } of this.#trajectory.branches) {
      const draft = this.#main.get(id)
      const from = parent?.step === null || parent === null ? undefined : this.#written.get(parent.step)
      if (draft && from) from.step.results.push({ subagent_trajectory_ref: [{ trajectory_id: draft.id }] })
    }
  }
}

/** For each action, the next one in its branch. */
function nextActions(steps: readonly Step[]): Map<number, ActionStep> {
  const next = new Map<number, ActionStep>()
  const last = new Map<number, number>()
  for (const step of steps) {
    if (step.kind !== 'action') continue
    const { index, branch = 0 } = step
    const before = last.get(branch)
    if (before !== undefined) next.set(before, step)
    last.set(branch, index)
  }
  return next
}

const errorText = (error: unknown): string => {
  const { message } = (typeof error === 'object' && error !== null ? error : {}) as { message?: unknown }
  return typeof message === 'string' ? message : textOf(error)
}

/** All fields without an equivalent in ATIF: the reward for every reader, the rest for an import. */
function rootExtra(trajectory: Trajectory): Extra {
  const { task, split, group, rollout, attempt, seed, ending, episode, grade, digest, ms, meta } = trajectory
  const known = { task, split, group, rollout, attempt, seed, ending, episode, grade, digest, ms, meta }
  const values = Object.entries({ ...known, input: trajectory.input, answer: trajectory.answer })
  const about = values.filter(([, value]) => value !== undefined && value !== null)
  const judgement = judgementOfTrajectory(trajectory)
  const { reward, solved: success } = judgement
  return {
    ...(isGraded(judgement) && given({ reward, success })),
    manyworlds: toLossless(Object.fromEntries(about)),
  }
}
