import { nearest } from '../../../did-you-mean.ts'
import { ManyworldsError } from '../../../errors.ts'
import { judgementOf } from '../../../grade/judgement.ts'
import { type Outcome, outcomeOf } from '../../../grade/outcome.ts'
import type { EvaluationSummary } from '../../../grade/summarize.ts'
import { describeRate } from '../../../grade/words.ts'
import { evaluationOf } from '../../../progress/evaluation-tally.ts'
import { summaryText } from '../../../progress/summary.ts'
import { Tally } from '../../../progress/tally.ts'
import { withTrajectory } from '../../../response.ts'
import { runFolder } from '../../../store/find-run.ts'
import { RunFile } from '../../../store/run-file.ts'
import { changeText } from '../../../store/settings-changes.ts'
import type { SettingsPart } from '../../../store/settings-parts.ts'
import type { RunOverview } from '../../../store/stored-task.ts'
import { findRunOrTraining } from '../../../store/trainings/find-training.ts'
import type { TaskResponse } from '../../../task.ts'
import { columnsOf } from '../../../text/columns.ts'
import { firstLine } from '../../../text/escape-controls.ts'
import { inline } from '../../../text/inline.ts'
import { jsonLine } from '../../../text/json.ts'
import { runArgument } from '../../../text/own-command.ts'
import { type Paint, painterFor, wantsColor } from '../../../text/paint.ts'
import { count, counted, duration } from '../../../text/quantities.ts'
import { cut, displayWidth, padEnd } from '../../../text/width.ts'
import { renderTask } from './render-task.ts'
import { showSweep } from './show-sweep.ts'
import { showTraining } from './show-training.ts'
import type { ShowArgs } from './spec.ts'

const TASKS = 20
/** At most this many ids are compared with a mistyped one. */
const MAX_COMPARED_IDS = 20_000
const MAX_COMPARED_CHARS = 200

/** Shows a run, one of its tasks, a training, or a sweep. */
export async function run(args: ShowArgs): Promise<number> {
  if (showSweep(args)) return 0
  const found = findRunOrTraining(args.run, runFolder(args.dir))
  if (found.training) {
    await showTraining(found.training, args)
    return 0
  }
  using file = RunFile.at(found.run)
  if (args.task !== undefined) print(taskText(file, args.task, args))
  else if (args.json) for (const response of responses(file, args)) print(jsonLine(withTrajectory(response)))
  else for (const text of runTexts(file, args, found.run.training)) print(text)
  return 0
}

const print = (text: string) => void process.stdout.write(`${text}\n`)
const width = () => columnsOf(process.stdout)

function taskText(file: RunFile, id: string, { json, logs, full }: ShowArgs): string {
  const task = file.task(id)
  if (!task) throw noTask(file, id)
  return json
    ? jsonLine({ ...task, ...(task.response && { response: withTrajectory(task.response) }) })
    : renderTask(task, { color: wantsColor(process.stdout), width: width(), logs, full })
}

function* runTexts(file: RunFile, args: ShowArgs, training: string | undefined): Generator<string> {
  const paint = painterFor(process.stdout)
  const overview = file.overview()
  const outcomes = [...file.rollouts({ metadata: args.by !== undefined })]
  const evaluation = evaluationOf(outcomes, args.by === undefined ? {} : { groupBy: args.by })
  yield summary(file, overview, evaluation)
  yield* sessionLines(overview, training, paint)
  const thinned = file.thinned()
  if (thinned > 0) yield `${paint('dim', 'steps'.padEnd(11))}of ${counted(thinned, 'task')} were removed to save space`
  yield* partLines(file.settingsParts(), outcomes, paint)
  yield* groupLines(evaluation, args.by, paint)
  yield ''
  let shown = 0
  const limit = args.limit ?? TASKS
  for (const response of responses(file, { ...args, limit })) {
    shown++
    yield args.logs ? `${taskText(file, response.id, args)}\n` : taskLine(response, paint)
  }
  const more = outcomes.filter((outcome) => isWanted(outcome, args)).length - shown
  if (more > 0)
    yield paint(
      'dim',
      `… and ${count(more)} more; --limit N shows more, --failed only tasks that did not succeed, --unsolved only those that are not solved`,
    )
}

/** Whether a task is listed: it has a response, and is one of those asked for. */
const isWanted = (outcome: Outcome, { failed, unsolved }: Pick<ShowArgs, 'failed' | 'unsolved'>): boolean =>
  outcome.status !== 'not-run' &&
  !(failed && outcome.status === 'success') &&
  !(unsolved && judgementOf(outcome).solved !== false)

function* responses(
  file: RunFile,
  args: Pick<ShowArgs, 'failed' | 'unsolved'> & { readonly limit?: number | undefined },
): Generator<TaskResponse> {
  let left = args.limit ?? Number.POSITIVE_INFINITY
  if (left <= 0) return
  for (const { response } of file.seen(0, { failed: args.failed })) {
    if (!isWanted(outcomeOf(response), args)) continue
    yield response
    if (--left <= 0) return
  }
}

/** The figures of each part of a run that was resumed with other settings, and what changed. */
function* partLines(parts: readonly SettingsPart[], outcomes: readonly Outcome[], paint: Paint): Generator<string> {
  if (parts.length < 2) return
  yield `${paint('yellow', 'settings')}   changed when the run was resumed, so its figures mix answers of different settings:`
  for (const { first, last, changes } of parts) {
    const own = outcomes.filter(({ session = 0 }) => session >= first && session <= last)
    const sessions = first === last ? `session ${first}` : `sessions ${first} to ${last}`
    const answers = counted(own.filter(({ status }) => status === 'success').length, 'answer')
    const success = evaluationOf(own)?.success
    const figure = success ? `, ${describeRate(success)}` : ''
    yield `           ${sessions}: ${answers} of ${counted(own.length, 'task')}${figure}`
    for (const change of changes) yield `             ${firstLine(changeText(change))}`
  }
}

/** `level 1     82.0 % (95 % interval 70.1 to 90.2)  50 tasks` */
function* groupLines(
  evaluation: EvaluationSummary | undefined,
  by: string | undefined,
  paint: Paint,
): Generator<string> {
  if (by === undefined) return
  if (evaluation?.groups === undefined) {
    yield paint('dim', `no answer is graded, so there are no figures by ${by}`)
    return
  }
  const names = Object.keys(evaluation.groups)
  const wide = Math.max(...names.map((name) => displayWidth(firstLine(name))))
  for (const [name, { success, tasks }] of Object.entries(evaluation.groups)) {
    const figure = success ? describeRate(success) : 'no result'
    yield `${paint('dim', firstLine(by).padEnd(10))} ${padEnd(firstLine(name), wide)}  ${figure}  ${counted(tasks, 'task')}`
  }
}

function summary(file: RunFile, overview: RunOverview, evaluation: EvaluationSummary | undefined): string {
  const { runId, total, sample } = overview
  const tally = new Tally({ runId, total, sampledFrom: sample?.of, usage: () => file.spent() })
  for (const outcome of file.outcomes()) tally.add(outcome)
  const { status: state, elapsedMs, file: path, error } = overview
  const head = { state, elapsedMs, file: path, error, evaluation }
  return summaryText(tally, {
    ...head,
    color: wantsColor(process.stdout),
    width: width(),
    isPipe: !process.stdout.isTTY,
  })
}

function* sessionLines(
  { sessions, script, engineName, file }: RunOverview,
  training: string | undefined,
  paint: Paint,
): Generator<string> {
  const label = (text: string) => paint('dim', text.padEnd(11))
  if (training !== undefined)
    yield `${label('training')}${firstLine(training)}  ${paint('dim', `manyworlds show ${firstLine(runArgument(training, file))}`)}`
  if (script !== undefined) yield `${label('script')}${firstLine(script.replace(/^file:\/\//, ''))}`
  if (engineName !== undefined) yield `${label('engine')}${firstLine(engineName)}`
  if (sessions > 1) yield `${label('sessions')}${sessions}`
}

/** `success  120 ms  task-17  { answer: 42 }`; `unsolved` for an answer that is not solved. */
function taskLine(response: TaskResponse, paint: Paint): string {
  const { id, status, timing, success } = response
  const text = success ? inline(response.answer) : `${response.error.code}: ${response.error.message}`
  const isWrong = success && judgementOf(outcomeOf(response)).solved === false
  const start = `${(isWrong ? 'unsolved' : status).padEnd(9)}  ${duration(timing.runMs).padStart(8)}  ${firstLine(id)}  `
  return `${paint(isWrong ? 'yellow' : success ? 'green' : 'red', start)}${cut(firstLine(text), Math.max(20, width() - displayWidth(start)))}`
}

function noTask(file: RunFile, id: string): ManyworldsError {
  const ids = Array.from(file.tasks(), (task) => task.id)
  const short = ids.filter((other) => other.length <= MAX_COMPARED_CHARS).slice(0, MAX_COMPARED_IDS)
  const near = id.length <= MAX_COMPARED_CHARS ? nearest(id, short) : undefined
  const hint =
    near === undefined
      ? `it has ${count(ids.length)}, such as ${ids.slice(0, 3).join(', ')}`
      : `did you mean '${near}'?`
  return new ManyworldsError('TASK_NOT_FOUND', `run ${file.runId} has no task '${id}'; ${hint}`)
}
