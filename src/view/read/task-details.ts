import { ManyworldsError } from '../../errors.ts'
import { plainError } from '../../response.ts'
import type { PagedRun } from '../../store/paged/paged-run.ts'
import {
  type EndedRecord,
  endedAttempts,
  type OpenRecord,
  openAttempts,
  rolloutsOf,
  subTasksOf,
  type TaskRecord,
  taskRecord,
} from '../../store/paged/task-record.ts'
import { ROLE } from '../../store/schema.ts'
import { type Branch, branchesOf } from '../../trajectory/branches.ts'
import type { Step } from '../../trajectory/step.ts'
import { totalUsage } from '../../trajectory/usage.ts'
import { type AttemptDetails, ROLES, type TaskDetails } from '../api.ts'
import { attemptSteps, stepsKey } from './attempt-steps.ts'
import { cutJson } from './cut-texts.ts'
import { cutLogs } from './logs.ts'
import { sessionInProgress, stateOf } from './states.ts'

/** The most steps that are searched for branches. */
const MOST_STEPS = 20_000

/** Options for a caller that reads many tasks. */
export interface DetailsWanted {
  /** The number of the session in progress. */
  readonly session: number | undefined
  /** Whether to look for branches in the steps of attempts that have ended. If not, they have branch 0 only. */
  readonly branches: boolean
}

export async function taskDetails(
  run: PagedRun,
  id: string,
  signal: AbortSignal,
  wanted: DetailsWanted = { session: sessionInProgress(run.overview()), branches: true },
): Promise<TaskDetails> {
  const { session } = wanted
  const task = taskRecord(run, id)
  if (task === undefined) throw noTask(run, id)
  const ended = endedAttempts(run, task.task)
  const open = openAttempts(run, task.task)
  const final = ended.find(({ role }) => role === ROLE.final)
  const attempts: AttemptDetails[] = []
  for (const one of ended) attempts.push(await endedDetails(run, task, one, wanted, signal))
  for (const one of open) attempts.push(await openDetails(run, task, one, session, signal))
  const { grade } = final?.response ?? {}
  const state = stateOf(
    final?.response.status ?? null,
    open.some(({ epoch }) => epoch === session),
  )
  const beside = (one: ReturnType<typeof subTasksOf>[number]) =>
    stateOf(one.status, session !== undefined && one.isUnderWay === 1)
  return {
    ...{ runId: run.runId, task: task.task, id },
    ...(task.parentId !== null && { parentId: task.parentId }),
    ...{ agentName: task.agentName, state, input: shorten(task.input) },
    ...(task.info && { info: shorten(task.info) }),
    ...(task.dependsOn && { dependsOn: task.dependsOn }),
    attempts,
    subTasks: subTasksOf(run, task).map((one) => ({ id: one.id, state: beside(one) })),
    ...(grade && { grade: shorten(grade) }),
    rollouts: rolloutsOf(run, task).map((one) => ({
      ...{ id: one.id, rollout: one.rollout ?? 1, state: beside(one), reward: one.reward },
      ...{ solved: one.solved === null ? null : one.solved === 1, runMs: one.runUs === null ? null : one.runUs / 1000 },
    })),
  }
}

/** Lossless JSON in which long texts are cut. */
const shorten = <Value>(value: Value): Value => cutJson(value).json as never

async function endedDetails(
  run: PagedRun,
  task: TaskRecord,
  { seq, epoch, role, endedAt, version, start, hasOldSteps, response }: EndedRecord,
  wanted: DetailsWanted,
  signal: AbortSignal,
): Promise<AttemptDetails> {
  const { timing, worker, episode, digest, removedSteps } = response
  const key = removedSteps === undefined ? stepsKey(start, seq, hasOldSteps) : null
  return {
    ...{ attempt: response.attempts, session: epoch, role: ROLES[role]!, state: response.status, start: key },
    ...(removedSteps !== undefined && { removedSteps }),
    ...{ startedAt: endedAt - Math.round(timing.runMs), endedAt },
    ...{ queuedMs: timing.queuedMs, runMs: timing.runMs, waitedMs: timing.waitedMs },
    ...(worker && { worker }),
    ...(response.success ? { answer: shorten(response.answer) } : { error: shorten(plainError(response.error)) }),
    usage: response.usage,
    ...(episode && { episode: shorten(episode) }),
    ...(digest !== undefined && { digest }),
    ...(version !== null && { version }),
    logs: cutLogs(response.logs),
    branches: (await lookThrough(run, task, wanted.branches ? key : null, signal)).branches,
  }
}

async function openDetails(
  run: PagedRun,
  task: TaskRecord,
  { start, attempt, epoch, at, worker }: OpenRecord,
  session: number | undefined,
  signal: AbortSignal,
): Promise<AttemptDetails> {
  const { branches, usage } = await lookThrough(run, task, start, signal)
  return {
    ...{ attempt, session: epoch, role: 'unfinished', state: stateOf(null, epoch === session), start, startedAt: at },
    ...(worker && { worker }),
    ...{ usage, logs: { lines: [], left: 0 }, branches },
  }
}

/** The branches and the usage of the steps of an attempt. */
async function lookThrough(
  run: PagedRun,
  { task, agentName }: TaskRecord,
  key: number | null,
  signal: AbortSignal,
): Promise<{ readonly branches: Branch[]; readonly usage: ReturnType<typeof totalUsage> }> {
  const steps = key === null ? undefined : attemptSteps(run, task, key)
  const telling: Step[] = []
  const used: Pick<Step, 'usage'>[] = []
  let count = 0
  for await (const step of steps ?? []) {
    signal.throwIfAborted()
    if (++count > MOST_STEPS) break
    if (step.opens || (step.kind === 'note' && step.ends)) telling.push(step)
    if (step.usage) used.push({ usage: step.usage })
  }
  const branches = branchesOf(agentName, telling)
  return { branches: cutJson(branches).json as never, usage: totalUsage(used) }
}

export const noTask = (run: PagedRun, id: string): ManyworldsError =>
  new ManyworldsError('TASK_NOT_FOUND', `run ${run.runId} has no task '${id.slice(0, 200)}'`)
