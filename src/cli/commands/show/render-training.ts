import { isFields, isNumber, isText } from '../../../store/stored-shapes.ts'
import type { TrainingOverview } from '../../../store/trainings/training-overview.ts'
import type { EvalRow, UpdateRow } from '../../../store/trainings/training-rows.ts'
import { type ChartLayout, chart, sparkline } from '../../../text/chart.ts'
import { firstLine, oneLine } from '../../../text/escape-controls.ts'
import type { Paint } from '../../../text/paint.ts'
import { bytes, clock, count, counted } from '../../../text/quantities.ts'
import { cut, displayWidth, padEnd, padStart } from '../../../text/width.ts'
import { describeEvaluation, rewardIn, successIn } from '../../render/evaluation-figures.ts'
import { STATUS_COLORS } from '../../render/runs.ts'

export interface TrainingView {
  readonly overview: TrainingOverview
  readonly updates: readonly UpdateRow[]
  readonly evaluations: readonly EvalRow[]
  readonly runs: readonly string[]
}

export interface TrainingLayout {
  readonly paint: Paint
  readonly width: number
  /** Draw charts with block characters instead of ASCII. */
  readonly blocks: boolean
  /** The most evaluations, and alarms, to list. */
  readonly limit: number
  /** The name of the training on the command line. */
  readonly name: string
}

const LABEL = 11
const WIDEST_SPARKLINE = 40
const FIGURE_WIDTH = 10
/** The metrics of the learner that are shown, with their labels. */
const METRICS: readonly [name: string, label: string][] = [
  ['loss', 'loss'],
  ['valueLoss', 'value loss'],
  ['entropy', 'entropy'],
  ['klFromBehavior', 'KL'],
  ['kl', 'KL from ref.'],
  ['clipFraction', 'clipped'],
  ['gradientNorm', 'gradient'],
  ['evaluations', 'evaluations'],
  ['candidates', 'candidates'],
  ['unusable', 'unusable'],
  ['usd', 'USD'],
]

/** A training: its state, curves, alarms and evaluations, and commands that show more. */
export function* renderTraining(view: TrainingView, layout: TrainingLayout): Generator<string> {
  yield* head(view, layout)
  yield* curves(view, layout)
  yield* figures(view, layout)
  yield* alarms(view, layout)
  yield* evaluations(view, layout)
  yield* next(view, layout)
}

function* head({ overview, evaluations }: TrainingView, { paint, width }: TrainingLayout): Generator<string> {
  const { id, status, updates, epoch, agent, policy, seed, script, sessions, error, file, best, curve } = overview
  const label = (text: string) => paint('dim', text.padEnd(LABEL))
  const so = `${counted(updates, 'update')}${epoch > 0 ? ` in ${counted(epoch, 'epoch')}` : ''}`
  yield `training ${firstLine(id)} ${paint(STATUS_COLORS[status], status)}, ${so}`
  if (error !== undefined) yield paint('red', cut(firstLine(error), width))
  yield `${label('agent')}${firstLine(agent)}, policy ${firstLine(policy)}, seed ${seed}`
  if (script !== undefined) yield `${label('script')}${firstLine(script.replace(/^file:\/\//, ''))}`
  yield `${label('store')}${oneLine(file)}`
  if (sessions > 1) yield `${label('sessions')}${sessions}`
  yield `${label('time')}${clock(overview.collectMs)} collecting, ${clock(overview.trainMs)} learning`
  yield `${label('versions')}${count(overview.versions)}, ${count(overview.keptVersions)} with their weights (${bytes(overview.bytes)})`
  const row = evaluations.find(({ version, split }) => version === best && split === 'validation')
  if (best !== undefined)
    yield `${label('best')}version ${best}${row ? `: validation ${describeEvaluation(row.summary)}` : ''}`
  if (curve !== undefined) yield `${label('curve')}SHA-256 ${firstLine(curve)}`
}

function* curves({ updates, evaluations }: TrainingView, layout: TrainingLayout): Generator<string> {
  const success = updates.map(({ report }) => numberIn(report, 'successRate'))
  const isJudged = success.some((value) => value !== null)
  const collected = isJudged ? success : updates.map(({ report }) => numberIn(report, 'reward'))
  const what = isJudged ? 'solved' : 'reward'
  const numbers = updates.map(({ number }) => String(number))
  yield* curve(`${what} of the training episodes, by update`, collected, numbers, isJudged, layout)
  const validation = evaluations.filter(({ split }) => split === 'validation')
  const ofSuccess = validation.map(({ summary }) => successIn(summary))
  const isSolved = ofSuccess.some((value) => value !== null)
  const values = isSolved ? ofSuccess : validation.map(({ summary }) => rewardIn(summary))
  const versions = validation.map(({ version }) => `v${version}`)
  yield* curve(`${isSolved ? 'solved' : 'reward'} in validation, by version`, values, versions, isSolved, layout)
}

function* curve(
  title: string,
  values: readonly (number | null)[],
  names: readonly string[],
  isShare: boolean,
  { paint, width, blocks }: TrainingLayout,
): Generator<string> {
  const known = values.filter((value) => value !== null)
  if (known.length < 2) return
  // The axis of a share is 0 to 1, so that small changes do not look large.
  const [low, high] = isShare ? [0, 1] : [Math.min(...known), Math.max(...known)]
  const label = isShare ? (value: number) => `${100 * value} %` : (value: number) => value.toPrecision(3)
  const drawing: ChartLayout = { width, blocks, low, high, label, ends: [names[0]!, names.at(-1)!] }
  const { lines, perColumn } = chart(values, drawing)
  yield ''
  yield `${title}${perColumn > 1 ? paint('dim', ` (a column is the mean of ${perColumn})`) : ''}`
  yield* lines
}

function* figures({ updates }: TrainingView, { paint, width, blocks }: TrainingLayout): Generator<string> {
  const figure = (name: string, label: string, of: (report: object) => object) => {
    const values = updates.map(({ report }) => numberIn(of(report), name))
    const known = values.filter((value) => value !== null)
    return known.length === 0 ? [] : [{ label, values, known }]
  }
  const rows = [
    ...figure('reward', 'reward', (report) => report),
    ...figure('length', 'actions', (report) => report),
    ...METRICS.flatMap(([name, label]) => figure(name, label, metricsOf)),
  ]
  if (rows.length === 0) return
  const wide = Math.max(...rows.map(({ label }) => displayWidth(label)), LABEL)
  const columns = ['first', 'last', 'lowest', 'highest'].map((title) => padStart(title, FIGURE_WIDTH)).join('')
  const room = Math.min(WIDEST_SPARKLINE, width - wide - 4 * FIGURE_WIDTH - 2)
  yield ''
  yield paint('dim', `${padEnd('by update', wide)}${columns}`)
  for (const { label, values, known } of rows) {
    const ends = [known[0]!, known.at(-1)!, Math.min(...known), Math.max(...known)]
    const numbers = ends.map((value) => padStart(shortNumber(value), FIGURE_WIDTH)).join('')
    const line = room < WIDEST_SPARKLINE / 4 ? '' : `  ${sparkline(values, room, blocks)}`
    yield `${padEnd(label, wide)}${numbers}${line}`.trimEnd()
  }
}

function* alarms({ updates }: TrainingView, { paint, width, limit }: TrainingLayout): Generator<string> {
  const said = updates.flatMap(({ number, report }) => {
    const list = (report as { readonly alarms?: unknown }).alarms
    return Array.isArray(list) ? list.filter(isText).map((text) => ({ number, text: String(text) })) : []
  })
  if (said.length === 0) return
  yield ''
  yield paint('yellow', `${counted(said.length, 'alarm')}${said.length > limit ? `, the last ${limit}` : ''}`)
  for (const { number, text } of said.slice(-limit)) yield cut(`  update ${number}: ${firstLine(text)}`, width)
}

function* evaluations({ evaluations: all, overview }: TrainingView, layout: TrainingLayout): Generator<string> {
  const { paint, limit } = layout
  if (all.length === 0) return
  const isBest = ({ version, split }: EvalRow) => version === overview.best && split === 'validation'
  const important = (row: EvalRow) => row.split === 'test' || row.version === 0 || isBest(row)
  const others = all.filter((row) => !important(row)).slice(-Math.max(1, limit - all.filter(important).length))
  const listed = all.filter((row) => important(row) || others.includes(row))
  const shown = [
    ...listed.filter(({ split }) => split === 'validation'),
    ...listed.filter(({ split }) => split === 'off-task'),
    ...listed.filter(({ split }) => split === 'test'),
  ]
  const rows = shown.map((row) => [
    `version ${row.version}`,
    row.split,
    describeEvaluation(row.summary),
    `${counted(row.tasks, 'task')} x ${row.rollouts}`,
  ])
  const widths = [0, 1, 2].map((column) => Math.max(...rows.map((row) => displayWidth(row[column]!))))
  yield ''
  yield `evaluations${shown.length < all.length ? paint('dim', ` (${shown.length} of ${all.length}; --limit N shows more)`) : ''}`
  for (const [place, row] of rows.entries()) {
    const text = row.map((cell, column) => padEnd(cell, widths[column] ?? 0)).join('  ')
    yield isBest(shown[place]!) ? paint('green', `  ${text}  best`) : `  ${text}`.trimEnd()
  }
}

function* next({ overview, runs }: TrainingView, { paint, name }: TrainingLayout): Generator<string> {
  const last = runs.findLast((id) => /\.u\d+$/.test(id))
  yield ''
  yield `${counted(runs.length, 'run')}${runs.length === 0 ? '' : `, from ${oneLine(runs[0]!)} to ${oneLine(runs.at(-1)!)}`}`
  // The folder in the name, if there is one.
  const folder = name.slice(0, name.length - overview.id.length)
  const inFolder = folder === '' ? '' : ` --dir ${folder}`
  const hints = [
    ...(last === undefined ? [] : [['episodes of the last update', `manyworlds show ${folder}${oneLine(last)}`]]),
    ...(runs.length > 0 ? [['all of them', `manyworlds runs --all${inFolder}`]] : []),
    ...(overview.keptVersions > 0 ? [['the policy', `manyworlds export ${name} --policy FOLDER`]] : []),
  ]
  for (const [what, command] of hints) yield paint('dim', `  ${padEnd(what!, 28)} ${command}`)
}

const metricsOf = (report: object): object => {
  const { metrics } = report as { readonly metrics?: unknown }
  return isFields(metrics) ? metrics : {}
}

function numberIn(fields: object, name: string): number | null {
  const value = (fields as Readonly<Record<string, unknown>>)[name]
  return isNumber(value) ? (value as number) : null
}

/** `0.0123`, `1.2e-7`, `1234` */
const shortNumber = (value: number): string =>
  value === 0 || (Math.abs(value) >= 1e-4 && Math.abs(value) < 1e6)
    ? String(Number(value.toPrecision(3)))
    : value.toExponential(1)
