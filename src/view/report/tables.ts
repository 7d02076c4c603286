import { counted } from '../../text/quantities.ts'
import { attemptChunks } from '../read/attempt-chunks.ts'
import { evaluationOf } from '../read/figures.ts'
import { runDetails } from '../read/run-details.ts'
import { taskChunks } from '../read/task-chunks.ts'
import type { OpenRun, Viewer } from '../viewer.ts'
import type { PackedJson } from './packed-json.ts'
import { type ReportedTask, tasksIn } from './report-run.ts'

/** Reserved for the end of a run. */
const END_BYTES = 64

/** A run whose table is in the report. */
export interface TabledRun {
  readonly id: string
  readonly tasks: readonly ReportedTask[]
}

export interface Tables {
  readonly runs: readonly TabledRun[]
  /** What had to be left out, in words. */
  readonly leftOut: readonly string[]
  /** The size with all tables. */
  readonly needed: number
}

export interface TablesOptions {
  readonly most: number
  readonly signal: AbortSignal
  readonly progress: (progress: { readonly done: number; readonly total: number }) => void
}

/** Adds the tables of the runs that fit. If there is too little space, a run is added without its timeline. */
export async function addTables(
  json: PackedJson,
  viewer: Viewer,
  ids: readonly string[],
  { most, signal, progress }: TablesOptions,
): Promise<Tables> {
  const runs: TabledRun[] = []
  let without = 0
  let missing = 0
  for (const id of ids) {
    using open = viewer.openRun(id)
    const before = json.mark()
    if (runs.length > 0) json.add(',')
    const tasks = await addTable(json, open, id, { signal, progress })
    const table = json.mark()
    const hasTimeline = await addTimeline(json, open, { most, signal })
    if (!hasTimeline) json.rewind(table)
    json.add(hasTimeline ? '}' : ',"attempts":[]}')
    if (json.bytes > most) {
      missing += json.bytes - before.bytes
      json.rewind(before)
      continue
    }
    runs.push({ id, tasks })
    if (!hasTimeline) without++
  }
  const left = ids.length - runs.length
  return {
    runs,
    needed: json.bytes + missing,
    leftOut: [
      ...(left > 0 ? [`${counted(left, 'run')} of ${ids.length}`] : []),
      ...(without > 0 ? [`the timeline of ${counted(without, 'run')}`] : []),
    ],
  }
}

async function addTable(
  json: PackedJson,
  { run, causes }: OpenRun,
  id: string,
  { signal, progress }: Omit<TablesOptions, 'most'>,
): Promise<ReportedTask[]> {
  const { task: total } = run.positions()
  progress({ done: 0, total })
  const details = await runDetails(run, signal)
  const evaluation = details.evaluation ?? (await evaluationOf(run, signal))
  const whole = { ...details, ...(evaluation && { evaluation }) }
  json.add(`${JSON.stringify(id)}:{"details":${JSON.stringify(whole)},"tasks":`)
  const tasks: ReportedTask[] = []
  await addList(json, taskChunks(run, causes, signal), (chunk) => {
    tasks.push(...tasksIn(chunk))
    progress({ done: tasks.length, total })
    return true
  })
  return tasks
}

/** Returns false if there is too little space for it. */
async function addTimeline(
  json: PackedJson,
  { run }: OpenRun,
  { most, signal }: Pick<TablesOptions, 'most' | 'signal'>,
): Promise<boolean> {
  const fits = () => json.bytes + END_BYTES <= most
  json.add(',"attempts":')
  await addList(json, attemptChunks(run, signal), fits)
  return fits()
}

/** Adds items until `more` returns false. */
async function addList<Item>(json: PackedJson, items: AsyncIterable<Item>, more: (item: Item) => boolean) {
  json.add('[')
  let comma = ''
  for await (const item of items) {
    json.add(comma + JSON.stringify(item))
    comma = ','
    if (!more(item)) return
  }
  json.add(']')
}
