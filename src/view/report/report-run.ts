import type { PagedRun } from '../../store/paged/paged-run.ts'
import { type ReportPart, STATES, type StepLine, type TaskChunk, type TaskDetails } from '../api.ts'
import { stepLines } from '../read/step-lines.ts'
import { type DetailsWanted, taskDetails } from '../read/task-details.ts'
import { cutIn } from './cuts.ts'

export interface ReportedTask {
  readonly id: string
  /** True if the task did not succeed or was not solved. */
  readonly hasFailed: boolean
}

const SUCCESS = STATES.indexOf('success')

export const tasksIn = ({ id, state, solved }: TaskChunk): ReportedTask[] =>
  id.map((one, row) => ({ id: one, hasFailed: state[row] !== SUCCESS || solved[row] === 0 }))

/** A part of a report, as it is written. */
export interface WrittenPart {
  readonly json: string
  /** Which of its texts were cut, such as `answer` or `step 3`. */
  readonly cut: readonly string[]
}

const textOf = (part: ReportPart): string => JSON.stringify(part)

/** The details of a task, and the facts that its other parts need. */
export async function taskPart(run: PagedRun, of: string, id: string, wanted: DetailsWanted, signal: AbortSignal) {
  const task = await taskDetails(run, id, signal, wanted)
  const bare: TaskDetails = {
    ...task,
    // The logs are a separate part, so all lines count as left out here.
    attempts: task.attempts.map((one) => ({
      ...one,
      logs: { lines: [], left: one.logs.lines.length + one.logs.left },
    })),
  }
  const json = textOf({ run: of, kind: 'task', task: bare })
  return {
    ...{ json, cut: cutIn(bare, json) },
    /** The attempts that recorded steps. */
    starts: task.attempts.flatMap(({ start }) => start ?? []),
    hasLogs: task.attempts.some(({ logs }) => logs.lines.length > 0),
  }
}

/** The steps of these attempts of a task; undefined: there are none. */
export async function stepsPart(
  run: PagedRun,
  of: string,
  { id, starts }: { readonly id: string; readonly starts: readonly number[] },
  signal: AbortSignal,
): Promise<WrittenPart | undefined> {
  const steps: Record<number, StepLine[]> = {}
  for (const start of starts)
    for await (const line of stepLines(run, { task: id, start, from: 0 }, signal)) (steps[start] ??= []).push(line)
  const lines = Object.values(steps).flat()
  if (lines.length === 0) return undefined
  const cut = lines.flatMap((line) => (line.cut === undefined ? [] : [`step ${line.step.index}`]))
  return { json: textOf({ run: of, kind: 'steps', id, steps }), cut: [...new Set(cut)] }
}

/** What a task printed, attempt by attempt. */
export async function logsPart(
  run: PagedRun,
  of: string,
  id: string,
  wanted: DetailsWanted,
  signal: AbortSignal,
): Promise<WrittenPart> {
  const logs = (await taskDetails(run, id, signal, wanted)).attempts.map((attempt) => attempt.logs)
  return { json: textOf({ run: of, kind: 'logs', id, logs }), cut: logs.some(({ left }) => left > 0) ? ['logs'] : [] }
}
