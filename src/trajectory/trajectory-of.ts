import type { TaskGrade } from '../grade/grade.ts'
import type { PlainError } from '../response.ts'
import { type Branch, branchesOf } from './branches.ts'
import type { Episode } from './episode.ts'
import type { Step, StepContent } from './step.ts'
import { type Split, Trajectory, type TrajectoryEnding, type TrajectoryParts } from './trajectory.ts'
import type { Usage } from './usage.ts'

/** The parts of a response that a trajectory needs. */
interface ResponseParts {
  readonly id: string
  readonly agentName: string
  readonly status: 'success' | 'failed' | 'timeout' | 'crashed' | 'cancelled'
  readonly answer?: unknown
  readonly error?: PlainError
  readonly usage: Usage
  readonly timing: { readonly runMs: number }
  readonly attempts: number
  readonly groupId?: string
  readonly rollout?: number
  readonly episode?: Episode | undefined
  readonly grade?: TaskGrade
  readonly digest?: string
}

/** What a trajectory needs besides the response and its steps. Complete only if there is a store. */
export interface TrajectoryContext {
  readonly run?: { readonly id: string; readonly seed: number | string }
  readonly task?: {
    readonly input: unknown
    readonly metadata?: Readonly<Record<string, unknown>> | undefined
  }
  readonly groupSize?: number
  /** The trajectories of sub-tasks, which become branches. */
  readonly subTasks?: readonly Trajectory[]
}

/** Assembles a trajectory. */
export function trajectoryOf(
  response: ResponseParts,
  steps: readonly Step[],
  { run, task, groupSize, subTasks = [] }: TrajectoryContext = {},
): Trajectory {
  const { id, agentName, status, episode, rollout = 1, groupId } = response
  const meta = task?.metadata ?? {}
  const parts: TrajectoryParts = {
    id,
    run: run?.id ?? null,
    task: rollout > 1 && id.endsWith(`@${rollout}`) ? id.slice(0, id.lastIndexOf('@')) : id,
    agent: agentName,
    split: isSplit(meta.split) ? meta.split : null,
    group: groupId === undefined ? null : { id: groupId, size: groupSize ?? null },
    visit: 0,
    rollout,
    attempt: response.attempts,
    seed: run?.seed ?? null,
    branches: branchesOf(agentName, steps),
    steps,
    ...(task && { input: task.input }),
    ...(status === 'success' && { answer: response.answer }),
    ...(episode && 'finalObservation' in episode && { finalObservation: episode.finalObservation }),
    ending: endingOf(response),
    episode: episode ? { reward: episode.reward, success: episode.success } : null,
    grade: response.grade ?? null,
    digest: response.digest ?? null,
    usage: response.usage,
    ms: response.timing.runMs,
    meta,
  }
  return new Trajectory(withSubTasks(parts, subTasks))
}

const isSplit = (value: unknown): value is Split => value === 'train' || value === 'validation' || value === 'test'

function endingOf({ status, episode, error }: ResponseParts): TrajectoryEnding {
  if (status === 'success' || error === undefined) return episode?.ending ?? { kind: 'terminated' }
  const { code, name, message, stack, cause } = error
  const told = { code, name, message, ...(stack !== undefined && { stack }), ...(cause !== undefined && { cause }) }
  return { kind: status === 'cancelled' ? 'cancelled' : 'failed', error: told }
}

/** Adds sub-tasks: their steps are appended, in new branches. */
function withSubTasks(parts: TrajectoryParts, subTasks: readonly Trajectory[]): TrajectoryParts {
  if (subTasks.length === 0) return parts
  const branches = [...parts.branches]
  const steps = [...parts.steps]
  let next = branches.reduce((most, { id }) => Math.max(most, id), 0) + 1
  for (const sub of subTasks) {
    const offset = steps.length
    const moved = new Map(sub.branches.map(({ id }, place) => [id, next + place]))
    const branch = (id: number) => moved.get(id) ?? next
    for (const one of sub.branches) branches.push(movedBranch(one, sub, offset, branch))
    for (const step of sub.steps) steps.push(movedStep(step, offset, branch))
    next += sub.branches.length
  }
  return { ...parts, branches, steps }
}

type Numbers = (id: number) => number

function movedBranch({ id, parent, ...rest }: Branch, sub: Trajectory, offset: number, branch: Numbers): Branch {
  if (parent === null)
    return { ...rest, ...rootOf(sub), id: branch(id), parent: { branch: 0, step: null, why: 'subtask' } }
  const from = { ...parent, branch: branch(parent.branch), step: shifted(parent.step, offset) }
  return { ...rest, id: branch(id), parent: from }
}

/** The branch fields of a sub-task. */
function rootOf(sub: Trajectory): Pick<Branch, 'task' | 'end'> {
  const { id, ending, episode, grade } = sub
  const final = 'finalObservation' in sub ? { finalObservation: sub.finalObservation } : {}
  // A grade that is pending or has failed is no result: the environment's does not replace it.
  const { reward = null, success = null } = grade ?? episode ?? {}
  return { task: id, end: { ending, ...final, reward, success } }
}

const shifted = (step: number | null, offset: number) => (step === null ? null : step + offset)

function movedStep(step: Step, offset: number, branch: Numbers): Step {
  const { opens, ...own } = step
  const place = { index: step.index + offset, branch: branch(step.branch ?? 0) }
  // Drop `opens`: the table of branches has it now.
  return { ...own, ...movedReferences(step, offset), ...place } as Step
}

/** Shifts the references of a step to other steps. */
function movedReferences(step: StepContent, offset: number): Partial<StepContent> {
  if (step.kind === 'tool') return { call: step.call && { ...step.call, step: step.call.step + offset } }
  if (step.kind !== 'model') return {}
  const { request, tokens } = step
  return {
    request: { ...request, from: shifted(request.from, offset) },
    tokens: tokens && { ...tokens, from: shifted(tokens.from, offset) },
  }
}
