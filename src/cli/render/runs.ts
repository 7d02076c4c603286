import type { TaskStatus } from '../../task.ts'
import { firstLine } from '../../text/escape-controls.ts'
import { type Paint, painter } from '../../text/paint.ts'
import { bytes, clock, count, counted, precisePercent } from '../../text/quantities.ts'
import { type Column, table } from '../../text/table.ts'
import { cut, padEnd, padStart } from '../../text/width.ts'

export interface RunRow {
  readonly runId: string
  readonly file: string
  readonly status: 'running' | 'finished' | 'interrupted' | 'died' | 'failed' | 'unreadable'
  readonly problem?: string
  /** Why the run failed or was stopped. */
  readonly error?: string
  /** Epoch milliseconds. */
  readonly startedAt?: number
  readonly endedAt?: number
  readonly elapsedMs?: number
  readonly total?: number
  readonly counts?: Readonly<Record<TaskStatus, number>>
  readonly script?: string
  readonly engineName?: string
  readonly sessions?: number
  readonly bytes?: number
}

export interface RunsLayout {
  readonly color: boolean
  readonly width: number
  /** Epoch milliseconds. */
  readonly now: number
}

const PROBLEM_INDENT = '    '
const MIN_WIDTH = 20
/** Ids are shown whole, so that they can be copied, unless they are very long. */
const MAX_RUN_WIDTH = 40
const MIN_SCRIPT_WIDTH = 8
const MINUTE_MS = 60_000
const HOUR_MS = 60 * MINUTE_MS
const DAY_MS = 24 * HOUR_MS
export const STATUS_COLORS: Readonly<Record<RunRow['status'], Parameters<Paint>[0]>> = {
  running: 'cyan',
  finished: 'green',
  interrupted: 'yellow',
  died: 'red',
  failed: 'red',
  unreadable: 'red',
}

const columnsAt = (now: number): readonly Column<RunRow>[] => [
  { title: 'run', align: padEnd, rank: 0, text: ({ runId }) => cut(firstLine(runId), MAX_RUN_WIDTH) },
  {
    ...{ title: 'status', align: padEnd, rank: 1, text: ({ status }) => status },
    format: ({ status }) => STATUS_COLORS[status],
  },
  { title: 'started', align: padEnd, rank: 4, text: ({ startedAt }) => ago(startedAt, now) },
  {
    title: 'took',
    align: padStart,
    rank: 6,
    text: ({ elapsedMs }) => (elapsedMs === undefined ? '' : clock(elapsedMs)),
  },
  { title: 'tasks', align: padStart, rank: 2, text: tasks },
  { title: 'ok', align: padStart, rank: 3, text: succeeded },
  {
    title: 'failed',
    align: padStart,
    rank: 5,
    text: ({ counts }) => (counts ? count(done(counts) - counts.success) : ''),
  },
  { title: 'size', align: padStart, rank: 8, text: (row) => (row.bytes === undefined ? '' : bytes(row.bytes)) },
  {
    title: 'script',
    align: padEnd,
    rank: 7,
    text: ({ script = '' }) => firstLine(script),
    narrowest: MIN_SCRIPT_WIDTH,
  },
]

/** The runs as a table, with a row per run and its error below it. No line break at the end. */
export function renderRuns(rows: readonly RunRow[], { color, width, now }: RunsLayout): string {
  if (rows.length === 0) return 'no runs'
  const paint = painter(color)
  const room = Math.max(MIN_WIDTH, width)
  const { head, lines } = table(rows, columnsAt(now), { room, paint })
  const withProblems = rows.flatMap(({ status, error, problem = status === 'failed' ? error : undefined }, place) => [
    lines[place]!,
    ...(problem === undefined ? [] : [paint('red', PROBLEM_INDENT + cut(firstLine(problem), room - 4))]),
  ])
  return [head, ...withProblems].join('\n')
}

/** Cancelled tasks count as not done. */
const done = ({ cancelled, ...counts }: Readonly<Record<TaskStatus, number>>): number =>
  Object.values(counts).reduce((sum, tasks) => sum + tasks, 0)

function tasks({ counts, total }: RunRow): string {
  if (!counts) return ''
  return total === undefined || total === done(counts) ? count(done(counts)) : `${count(done(counts))}/${count(total)}`
}

function succeeded({ counts }: RunRow): string {
  return counts && done(counts) > 0 ? precisePercent(counts.success, done(counts)) : ''
}

export function ago(at: number | undefined, now: number): string {
  if (at === undefined) return ''
  const ms = now - at
  if (ms < MINUTE_MS) return 'just now'
  if (ms < HOUR_MS) return `${Math.floor(ms / MINUTE_MS)} min ago`
  if (ms < DAY_MS) return `${Math.floor(ms / HOUR_MS)} h ago`
  if (ms < 14 * DAY_MS) return `${counted(Math.floor(ms / DAY_MS), 'day')} ago`
  return new Date(at).toISOString().slice(0, 10)
}
