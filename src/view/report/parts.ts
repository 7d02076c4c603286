import { counted } from '../../text/quantities.ts'
import { sessionInProgress } from '../read/states.ts'
import type { DetailsWanted } from '../read/task-details.ts'
import { Turns } from '../read/turns.ts'
import type { OpenRun, Viewer } from '../viewer.ts'
import { Cuts } from './cuts.ts'
import type { PartList } from './part-list.ts'
import { logsPart, type ReportedTask, stepsPart, taskPart, type WrittenPart } from './report-run.ts'
import type { TabledRun } from './tables.ts'

/** Of which tasks a report contains the steps. */
export type Include = 'all' | 'failed' | 'none'

export interface PartsOptions {
  readonly include: Include
  readonly signal: AbortSignal
  readonly progress: (progress: PartsProgress) => void
}

/** How many tasks of a run were read for one kind of part. */
export interface PartsProgress {
  readonly doing: string
  readonly done: number
  readonly total: number
}

const DOING: Readonly<Record<keyof Left, string>> = {
  details: 'tasks',
  failedSteps: 'steps of failed tasks',
  logs: 'logs',
  otherSteps: 'steps of other tasks',
}

/** A task whose details are in the report, not only its row. */
interface OpenedTask extends ReportedTask {
  readonly starts: readonly number[]
  readonly hasLogs: boolean
}

/** The tasks of which something was left out for lack of space. */
interface Left {
  details: number
  failedSteps: number
  otherSteps: number
  logs: number
}

export interface AddedParts {
  /** What was left out for lack of space, in words. */
  readonly leftOut: readonly string[]
  readonly cuts: Cuts
}

/**
 * Adds the parts that fit, the most important first: details of tasks (failed ones first), steps of failed tasks, logs,
 * steps of the other tasks.
 */
export async function addParts(
  list: PartList,
  viewer: Viewer,
  runs: readonly TabledRun[],
  { include, signal, progress }: PartsOptions,
): Promise<AddedParts> {
  const left: Left = { details: 0, failedSteps: 0, otherSteps: 0, logs: 0 }
  const cuts = new Cuts()
  const opened = new Map<string, OpenedTask[]>()

  /** Adds a part of each of these tasks of a run. `read` returns undefined for a task that does not have it. */
  const add = async <Task extends ReportedTask, Part extends WrittenPart>(
    run: string,
    tasks: readonly Task[],
    kind: keyof Left,
    read: (open: OpenRun, task: Task, wanted: DetailsWanted) => Promise<Part | undefined>,
    added: (part: Part, task: Task) => void = () => {},
  ) => {
    if (tasks.length === 0) return
    using open = viewer.openRun(run)
    const wanted = { session: sessionInProgress(open.run.overview()), branches: false }
    left[kind] += tasks.length
    const turns = new Turns()
    const parts = async function* () {
      for (const [done, task] of tasks.entries()) {
        progress({ doing: DOING[kind], done, total: tasks.length })
        await turns.next(signal)
        const part = await read(open, task, wanted)
        if (part === undefined) left[kind]--
        else yield { ...part, task }
      }
    }
    await list.fill(parts(), (part) => {
      left[kind]--
      cuts.add(run, part.task.id, part.cut)
      added(part, part.task)
    })
  }

  for (const { id, tasks } of runs) {
    const found: OpenedTask[] = []
    opened.set(id, found)
    await add(
      id,
      failedFirst(tasks),
      'details',
      ({ run }, task, wanted) => taskPart(run, id, task.id, wanted, signal),
      ({ starts, hasLogs }, task) => void found.push({ ...task, starts, hasLogs }),
    )
  }
  const addSteps = async (kind: 'failedSteps' | 'otherSteps') => {
    for (const [id, tasks] of opened) {
      const wanted = tasks.filter(
        ({ hasFailed, starts }) => hasFailed === (kind === 'failedSteps') && starts.length > 0,
      )
      await add(id, wanted, kind, ({ run }, task) => stepsPart(run, id, task, signal))
    }
  }
  if (include !== 'none') await addSteps('failedSteps')
  for (const [id, tasks] of opened) {
    const logged = failedFirst(tasks.filter(({ hasLogs }) => hasLogs))
    await add(id, logged, 'logs', ({ run }, task, wanted) => logsPart(run, id, task.id, wanted, signal))
  }
  if (include === 'all') await addSteps('otherSteps')
  return { leftOut: wordsFor(left), cuts }
}

const failedFirst = <Task extends ReportedTask>(tasks: readonly Task[]): Task[] => [
  ...tasks.filter(({ hasFailed }) => hasFailed),
  ...tasks.filter(({ hasFailed }) => !hasFailed),
]

function wordsFor({ details, failedSteps, otherSteps, logs }: Left): string[] {
  const said = (count: number, words: (tasks: string) => string) => (count > 0 ? [words(counted(count, 'task'))] : [])
  return [
    ...said(otherSteps, (tasks) => `the steps of ${tasks} that succeeded`),
    ...said(logs, (tasks) => `the logs of ${tasks}`),
    ...said(failedSteps, (tasks) => `the steps of ${tasks} that failed`),
    ...said(details, (tasks) => `all but the row in the table of ${tasks}`),
  ]
}
