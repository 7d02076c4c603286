import type { StoredAttempt, StoredTask, UnfinishedAttempt } from '../../../store/stored-task.ts'
import type { TaskResponse } from '../../../task.ts'
import { episodeLines, gradeLines } from '../../../text/ending-lines.ts'
import { errorLines } from '../../../text/error-lines.ts'
import { escapeControls, firstLine } from '../../../text/escape-controls.ts'
import { type Paint, painter } from '../../../text/paint.ts'
import { count, counted, duration, usageText } from '../../../text/quantities.ts'
import { trajectoryLines } from '../../../text/trajectory-lines.ts'
import { labelledLines, textLines, type ValueLayout, valueLines } from '../../../text/value-lines.ts'
import { cut } from '../../../text/width.ts'
import { wrap } from '../../../text/wrap.ts'

export interface TaskLayout {
  readonly color: boolean
  readonly width: number
  /** Include the lines that the task printed. */
  readonly logs: boolean
  /** Do not shorten long texts and lists. */
  readonly full?: boolean
}

const MIN_WIDTH = 20
const INDENT = '  '
const LABEL_WIDTH = 11
const STATUS_COLORS: Readonly<Record<StoredTask['status'], Parameters<Paint>[0]>> = {
  success: 'green',
  pending: 'yellow',
  running: 'cyan',
  cancelled: 'yellow',
  failed: 'red',
  timeout: 'red',
  crashed: 'red',
}

/** A task from its input to its answer, for a terminal. No line break at the end. */
export function renderTask(task: StoredTask, { color, width, logs, full = false }: TaskLayout): string {
  const layout: ValueLayout = { width: Math.max(MIN_WIDTH, width) - INDENT.length, paint: painter(color), full }
  const last = lastAttempt(task)
  const removed = underWay(task) ? undefined : last?.removedSteps
  const steps = removed === undefined ? ((underWay(task) ?? last)?.trajectory ?? []) : []
  const blocks: readonly (readonly [string, readonly string[]])[] = [
    ['input', valueLines(task.input, layout)],
    removed === undefined
      ? [counted(steps.length, 'step'), trajectoryLines(steps, layout)]
      : [counted(removed, 'step'), ['removed to save space (`keepTrajectories` of the training)']],
    ['logs', logs ? (last?.logs ?? []).flatMap((line) => textLines(line, layout)) : []],
    ['ending', task.response?.episode ? episodeLines(task.response.episode, task.response.answer, layout) : []],
    ['answer', last?.status === 'success' ? valueLines(last.answer, layout) : []],
    ['grade', task.response?.grade ? gradeLines(task.response.grade, layout) : []],
    ['error', last?.error ? errorLines(last.error, layout) : []],
    ['other attempts', otherAttempts(task).flatMap((attempt) => attemptLines(attempt, layout))],
  ]
  const sections = blocks
    .filter(([, lines]) => lines.length > 0)
    .map(([title, lines]) => [layout.paint('bold', title), ...lines.map((line) => (INDENT + line).trimEnd())])
  return [headLines(task, layout), ...sections].map((lines) => lines.join('\n')).join('\n\n')
}

/** The attempt in progress, or the last interrupted one, if the task has no response. */
const underWay = ({ response, unfinished }: StoredTask): UnfinishedAttempt | undefined =>
  response ? undefined : unfinished.at(-1)

/** The response or, without one, the latest attempt. */
const lastAttempt = ({ response, attempts }: StoredTask): TaskResponse | StoredAttempt | undefined =>
  response ?? attempts.at(-1)

const otherAttempts = (task: StoredTask): readonly StoredAttempt[] =>
  task.attempts.filter((attempt) => attempt !== lastAttempt(task) && attempt.role !== 'final')

function headLines(task: StoredTask, layout: ValueLayout): string[] {
  const { paint } = layout
  const width = layout.width + INDENT.length
  const { response, info = {} } = task
  const last = lastAttempt(task)
  const begun = underWay(task)
  const worker = (begun ?? last)?.worker
  const list = (ids: readonly string[] = []) => ids.map(firstLine).join(', ')
  const facts: readonly (readonly [string, string])[] = [
    ['run', firstLine(task.runId)],
    ['agent', firstLine(task.agentName)],
    ['attempts', response ? count(response.attempts) : ''],
    ['worker', worker ? workerText(worker) : ''],
    ['started', begun ? `${new Date(begun.startedAt).toISOString()}, attempt ${begun.attempt}` : ''],
    ['time', last && !begun ? timeText(last.timing) : ''],
    ['usage', response ? usageText(response.usage) : ''],
    ['parent', firstLine(task.parentId ?? '')],
    ['needs', list(task.dependsOn)],
    ['sub-tasks', list(task.subTaskIds)],
    ['printed', last?.logs.length ? counted(last.logs.length, 'line') : ''],
  ]
  return [
    `${paint('bold', cut(firstLine(task.id), width - 11))}  ${paint(STATUS_COLORS[task.status], task.status)}`,
    ...facts
      .filter(([, text]) => text !== '')
      .flatMap(([label, text]) => besideLabel(label, wrap(text, width - LABEL_WIDTH), paint)),
    ...Object.entries(info).flatMap(([key, value]) => labelledLines(key, value, { ...layout, width })),
  ]
}

/** A few lines about an attempt that is not the response. */
function attemptLines(attempt: StoredAttempt, layout: ValueLayout): string[] {
  const { status, error, trajectory, removedSteps, logs, timing, worker } = attempt
  const inside = { ...layout, width: layout.width - 2 * INDENT.length }
  const facts = [
    timeText(timing),
    worker ? workerText(worker) : '',
    trajectory.length > 0 ? counted(trajectory.length, 'step') : '',
    removedSteps === undefined ? '' : `${counted(removedSteps, 'step')}, which were removed`,
    logs.length > 0 ? `printed ${counted(logs.length, 'line')}` : '',
  ]
  const [answer = '', ...more] = status === 'success' ? valueLines(attempt.answer, inside) : []
  return [
    `${attempt.attempt}  ${attempt.role}  ${layout.paint(STATUS_COLORS[status], status)}`,
    ...[
      ...wrap(facts.filter((fact) => fact !== '').join(', '), inside.width),
      ...(error
        ? [layout.paint('red', cut(`${escapeControls(error.code)}: ${firstLine(error.message)}`, inside.width))]
        : []),
      ...(answer === '' ? [] : [more.length === 0 ? answer : `${answer} …`]),
    ].map((line) => INDENT + line),
  ]
}

const besideLabel = (label: string, rows: readonly string[], paint: Paint): string[] =>
  rows.map((row, place) => `${paint('dim', (place === 0 ? label : '').padEnd(LABEL_WIDTH))}${row}`)

const workerText = ({ id, host, pid }: NonNullable<StoredAttempt['worker']>): string =>
  firstLine(`${id} on ${host}${pid === undefined ? '' : `, pid ${pid}`}`)

/** The waiting time, in which the timeout is paused, is shown only if there was any: most tasks never wait. */
const timeText = ({ queuedMs, runMs, waitedMs }: StoredAttempt['timing']): string =>
  `queued ${duration(queuedMs)}, ${runMs === 0 ? 'run time unknown' : `ran ${duration(runMs)}`}${waitedMs < 1 ? '' : `, of which it waited ${duration(waitedMs)}`}`
