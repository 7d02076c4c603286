import { escapeControls, firstLine } from '../text/escape-controls.ts'
import { ownCommand, runArgument, shellWord } from '../text/own-command.ts'
import { type Paint, painter } from '../text/paint.ts'
import { clock, count, counted, duration, precisePercent, rate, usageText } from '../text/quantities.ts'
import { cut, displayWidth, padEnd, padStart } from '../text/width.ts'
import { wrap } from '../text/wrap.ts'
import { evaluationLines } from './evaluation-lines.ts'
import { type RunState, type SummaryData, type SummaryFacts, summaryData } from './summary-data.ts'
import type { Tally } from './tally.ts'

const DEFAULT_WIDTH = 80
/** Wider rows are hard to read. */
const MAX_WIDTH = 120
const MIN_WIDTH = 40
/** The longest reason of a failure in a file or a pipe. */
const PIPE_WIDTH = 1000
const LABEL = 11
/** No rate is shown for shorter runs. */
const SPEED_AFTER_MS = 1000

/** The words between the state and the duration. It is unknown when a run died. */
const TIME_WORDS: Readonly<Record<RunState, string>> = {
  running: 'for',
  finished: 'in',
  interrupted: 'after',
  died: '',
  failed: 'after',
}

interface SummaryLayout {
  readonly color: boolean
  /** Of the terminal. Left out: it is a file or a pipe, where the reasons of failures are not cut. */
  readonly width?: number | undefined
  /** The same for an output with a width. */
  readonly isPipe?: boolean
}

/** The summary of a run, for a reader. No line break at the end. */
export function summaryText(tally: Tally, options: SummaryFacts & SummaryLayout): string {
  const data = summaryData(tally, options)
  const width = Math.max(MIN_WIDTH, Math.min(MAX_WIDTH, options.width || DEFAULT_WIDTH))
  const { isPipe = options.width === undefined } = options
  const paint = painter(options.color)
  const ofSession = (lines: readonly string[]) => (data.restored === 0 ? lines : thisSession(lines, width - LABEL))
  const lines = [
    ...headLines(data, width, paint),
    ...(data.evaluation ? evaluationLines(data.evaluation, width - LABEL) : []).flatMap(({ label, lines }) =>
      labelled(label, lines, paint),
    ),
    ...labelled('failures', failureLines(data, isPipe ? PIPE_WIDTH : width - LABEL, paint), paint),
    ...labelled('run time', ofSession(runTimeLines(data, width - LABEL)), paint),
    ...labelled('waited', waitedLines(data), paint),
    ...labelled('slowest', ofSession(slowestLines(data, width - LABEL)), paint),
    ...labelled('retries', ofSession(data.retries === 0 ? [] : [count(data.retries)]), paint),
    ...labelled('restored', data.restored === 0 ? [] : [`${count(data.restored)}, done in an earlier session`], paint),
    ...labelled('models', ofSession(modelLines(data, width - LABEL)), paint),
    ...labelled('usage', usageLines(data), paint),
    ...labelled('printed', ofSession(printedLines(data, width - LABEL)), paint),
    ...labelled('run file', fileLines(data, options.state === undefined, paint), paint),
  ]
  return lines.join('\n')
}

/** Marks figures without restored tasks, beside those of all sessions. */
function thisSession(lines: readonly string[], width: number): readonly string[] {
  const [line, ...others] = lines
  if (line === undefined) return []
  const marked = `${line} (this session)`
  return others.length === 0 && displayWidth(marked) <= width ? [marked] : ['this session:', ...lines]
}

function headLines(data: SummaryData, width: number, paint: Paint): string[] {
  const { runId, state, error, done, restored, total, sampledFrom, counts, elapsedMs, perSecond } = data
  const time = TIME_WORDS[state] === '' ? '' : ` ${TIME_WORDS[state]} ${clock(elapsedMs)}`
  const tasks =
    total === undefined || total === done ? counted(done, 'task') : `${count(done)} of ${count(total)} tasks`
  const sample = sampleText(total ?? done, sampledFrom)
  const speed = perSecond === undefined || elapsedMs < SPEED_AFTER_MS ? '' : `, ${rate(perSecond)}`
  const byStatus = Object.entries(counts)
    .filter(([, tasks]) => tasks > 0)
    .map(([status, tasks]) =>
      status === 'success'
        ? paint('green', `${count(tasks)} succeeded (${precisePercent(tasks, done)})`)
        : paint('red', `${count(tasks)} ${status}`),
    )
  return [
    restored === 0
      ? `run ${escapeControls(runId)} ${paint(stateColor(data), state)}${time}: ${tasks}${sample}${speed}`
      : `run ${escapeControls(runId)} ${paint(stateColor(data), state)}: ${tasks}${sample}; this session: ${count(done - restored)}${time}${speed}`,
    ...(byStatus.length === 0 ? [] : [`  ${byStatus.join(', ')}`]),
    // An error that ends a run is reported by the caller; here it comes from the run file.
    ...(typeof error === 'string' ? wrap(firstLine(error), width - 2).map((line) => `  ${paint('red', line)}`) : []),
  ]
}

/** `, sampled from 8,000`; nothing if the limit was no smaller than the number of tasks. */
export const sampleText = (tasks: number | undefined, from: number | undefined): string =>
  from === undefined || (tasks !== undefined && from <= tasks) ? '' : `, sampled from ${count(from)}`

function stateColor({ state, counts, done }: SummaryData): Parameters<Paint>[0] {
  if (state === 'running') return 'cyan'
  return state !== 'finished' ? 'red' : counts.success === done ? 'green' : 'yellow'
}

/** The most causes of failures that are listed. */
const MOST_CAUSES = 10

/** `     10  TASK_THREW    task-17: fetch failed` */
function failureLines({ failures }: SummaryData, width: number, paint: Paint): string[] {
  const shown = failures.slice(0, MOST_CAUSES)
  const numberWidth = Math.max(0, ...shown.map((failure) => count(failure.count).length))
  const codeWidth = Math.max(0, ...shown.map(({ code }) => code.length))
  const others = failures.slice(MOST_CAUSES)
  const lines = shown.map(({ code, count: tasks, example }) => {
    const start = `${padStart(count(tasks), numberWidth)}  ${padEnd(escapeControls(code), codeWidth)}  `
    const text = cut(firstLine(`${example.id}: ${firstLine(example.message)}`), width - start.length)
    return `${paint('red', start)}${text}`
  })
  if (others.length === 0) return lines
  const tasks = others.reduce((sum, failure) => sum + failure.count, 0)
  return [...lines, `… and ${counted(others.length, 'other cause')}, of ${counted(tasks, 'task')}`]
}

function runTimeLines({ runMs }: SummaryData, width: number): string[] {
  if (!runMs) return []
  const { p50, p90, p99, max } = runMs
  return wrap(`p50 ${duration(p50)}   p90 ${duration(p90)}   p99 ${duration(p99)}   max ${duration(max)}`, width)
}

/** Shorter waits are not shown. */
const WAITED_MS = 1000

function waitedLines({ waitedMs, done }: SummaryData): string[] {
  if (waitedMs < WAITED_MS) return []
  return [`${duration(waitedMs)} in all, ${duration(waitedMs / Math.max(1, done))} a task; timeouts do not count it`]
}

/** `small  512 calls, 120,431 tokens, 3 rate-limited` */
function modelLines({ models }: SummaryData, width: number): string[] {
  const nameWidth = Math.max(0, ...models.map(({ model }) => displayWidth(firstLine(model))))
  return models.map(({ model, calls, tokens, rateLimited, failed }) => {
    const figures = [
      counted(calls, 'call'),
      tokens === 0 ? '' : counted(tokens, 'token'),
      rateLimited === 0 ? '' : `${count(rateLimited)} rate-limited`,
      failed === 0 ? '' : `${count(failed)} failed ${failed === 1 ? 'try' : 'tries'}`,
    ]
    return cut(`${padEnd(firstLine(model), nameWidth)}  ${figures.filter((text) => text !== '').join(', ')}`, width)
  })
}

/** The slowest tasks, unless there are only a few tasks. */
function slowestLines({ slowest, done }: SummaryData, width: number): string[] {
  if (done < 3) return []
  const times = slowest.map(({ runMs }) => duration(runMs))
  const timeWidth = Math.max(0, ...times.map((time) => time.length))
  return slowest.map(({ id, status }, place) =>
    cut(`${padStart(times[place]!, timeWidth)}  ${firstLine(id)}${status === 'success' ? '' : ` (${status})`}`, width),
  )
}

/** The usage; for a sample, also an extrapolation to all tasks. */
function usageLines({ usage, graderUsage = {}, done, sampledFrom }: SummaryData): string[] {
  const graders = usageText(graderUsage)
  const used = `${usageText(usage)}${graders && ` (graders: ${graders})`}`
  if (used === '') return []
  if (sampledFrom === undefined || done === 0 || sampledFrom <= done) return [used]
  const share = sampledFrom / done
  const all = Object.fromEntries(Object.entries(usage).map(([key, value]) => [key, value * share]))
  return [used, `all ${count(sampledFrom)} tasks, if they are like these: about ${usageText(all)}`]
}

/** Hints at what agents print with `console.log`. */
function printedLines({ hiddenLines, file, runId }: SummaryData, width: number): string[] {
  if (hiddenLines === 0) return []
  const hint = `agents printed ${counted(hiddenLines, 'line')}; --show-logs (showLogs: true) prints them`
  return wrap(file === undefined ? hint : `${hint}, or: ${showCommand(runId, file)} --logs`, width)
}

const showCommand = (runId: string, file: string) =>
  [...ownCommand(), 'show', runArgument(runId, file)].map(shellWord).join(' ')

/** `ended`: the run has just ended, so also print the commands that show it. */
function fileLines({ file, runId, failures }: SummaryData, ended: boolean, paint: Paint): string[] {
  if (file === undefined) return []
  const show = showCommand(runId, file)
  const commands = [
    ...(ended ? [show] : []),
    ...(failures[0] === undefined ? [] : [`${show} ${shellWord(failures[0].example.id)}`]),
  ]
  return [escapeControls(file), ...commands.map((command) => paint('cyan', command))]
}

const labelled = (label: string, lines: readonly string[], paint: Paint): string[] =>
  lines.map((line, place) => `${paint('dim', (place === 0 ? label : '').padEnd(LABEL))}${line}`)
