import { callOf } from '../../trajectory/conversation.ts'
import type { ModelStep, NoteStep, Step, ToolStep } from '../../trajectory/step.ts'
import type { Trajectory } from '../../trajectory/trajectory.ts'
import { type Changes, withChanges } from './changes.ts'
import { atifContent } from './content.ts'
import type { AtifContent, AtifStep, AtifTrajectory } from './document.ts'
import { spoken } from './draft.ts'
import { countsOf, tokensOf } from './metrics.ts'

/**
 * An imported document has the same steps as a recorded one. Fields without an equivalent are in notes, as `data.atif`: the
 * fields of the document in the first note of its branch, steps without a model call, and additional fields of a call.
 */
export type AtifNote =
  | { readonly document: Omit<AtifTrajectory, 'steps' | 'subagent_trajectories'> }
  | { readonly step: Omit<AtifStep, 'step_id'> }
  | { readonly call: Changes }

export function atifNote(step: Step | undefined): AtifNote | undefined {
  if (step?.kind !== 'note' || typeof step.data !== 'object' || step.data === null) return undefined
  const { atif } = step.data as { atif?: unknown }
  return typeof atif === 'object' && atif !== null ? (atif as AtifNote) : undefined
}

export const isImported = ({ steps }: Pick<Trajectory, 'steps'>): boolean => {
  const first = atifNote(steps[0])
  return first !== undefined && 'document' in first
}

/** Restores the document that a trajectory was imported from. */
export function importedDocument(trajectory: Trajectory): AtifTrajectory {
  const byBranch = Map.groupBy(trajectory.steps, ({ branch = 0 }) => branch)
  const children = Map.groupBy(trajectory.branches, ({ parent }) => parent?.branch ?? -1)
  const documentOf = (branch: number): AtifTrajectory => {
    const [first, ...rest] = byBranch.get(branch) ?? []
    const note = atifNote(first)
    const document = note && 'document' in note ? note.document : undefined
    if (document === undefined)
      throw new TypeError(`branch ${branch} of an imported trajectory does not start with a document`)
    const inside = children.get(branch) ?? []
    const steps = stepsOf(trajectory.steps, rest, document.agent.model_name)
    const own = { ...document, steps }
    return inside.length === 0 ? own : { ...own, subagent_trajectories: inside.map(({ id }) => documentOf(id)) }
  }
  return regraded(trajectory, documentOf(0))
}

function stepsOf(all: readonly Step[], own: readonly Step[], model: string | undefined): AtifStep[] {
  const steps: AtifStep[] = []
  for (let at = 0; at < own.length; ) {
    const step = own[at++]!
    if (step.kind === 'note') {
      const note = atifNote(step)
      if (note && 'step' in note) steps.push({ step_id: steps.length + 1, ...note.step })
    } else if (step.kind === 'model') {
      const results: (Step & ToolStep)[] = []
      for (let next = own[at]; next?.kind === 'tool' && next.call?.step === step.index; next = own[++at])
        results.push(next)
      const note = atifNote(own[at])
      const changes = note && 'call' in note ? note.call : undefined
      if (changes) at++
      const fields = withChanges(callFields(all, step, results, model), changes) as Omit<AtifStep, 'step_id'>
      steps.push({ step_id: steps.length + 1, ...fields })
    }
  }
  return steps
}

/** The fields of a call, from its steps. `model`: that of the document, which a step need not repeat. */
export function callFields(
  all: readonly Step[],
  step: Step & ModelStep,
  results: readonly (Step & ToolStep)[],
  model: string | undefined,
): Omit<AtifStep, 'step_id'> {
  const { reply, server, usage = {} } = step
  const metrics = { ...countsOf(usage), ...tokensOf(all, step) }
  return {
    ...{ source: 'agent', message: atifContent(reply.content) ?? '' },
    ...(server.model !== (model ?? '') && { model_name: server.model }),
    ...spoken(reply),
    ...(results.length > 0 && { observation: { results: results.map((result) => resultFields(all, result)) } }),
    ...(Object.keys(metrics).length > 0 && { metrics }),
  }
}

function resultFields(all: readonly Step[], step: Step & ToolStep) {
  const id = callOf(all, step)?.id ?? ''
  return { source_call_id: id, ...(step.result !== undefined && { content: step.result as AtifContent }) }
}

/** The grader of grades that come from the document. */
export const DOCUMENT_GRADER = 'imported'

/** Puts a grade that was given after the import where our own documents have it. */
function regraded({ grade }: Trajectory, document: AtifTrajectory): AtifTrajectory {
  if (grade === null || grade.grader.name === DOCUMENT_GRADER) return document
  const { reward, success } = grade
  return { ...document, extra: { ...document.extra, reward, success } }
}

/** A note with parts of a document. */
export const noteOf = (atif: AtifNote): NoteStep => ({ kind: 'note', data: { atif } })
