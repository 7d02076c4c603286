import { escapeControls, firstLine } from '../../text/escape-controls.ts'
import { ownCommand, runArgument, shellWord } from '../../text/own-command.ts'
import { type Paint, painter } from '../../text/paint.ts'
import { clock, counted, rate } from '../../text/quantities.ts'
import { wrap } from '../../text/wrap.ts'
import type { TestReport } from '../../train/pipeline/epoch-report.ts'
import { curveText, evaluationText, figureText, valueText } from './figure-text.ts'
import type { TrainingTally } from './tally.ts'

const DEFAULT_WIDTH = 80
const MAX_WIDTH = 120
const MIN_WIDTH = 40
const LABEL = 11
/** The number of bars of the curve. */
const CURVE_BARS = 40
/** No speed is shown for shorter trainings. */
const SPEED_AFTER_MS = 1000

interface TrainingEnding {
  readonly error: Error | undefined
  readonly interrupted: boolean
}

interface Layout {
  readonly color: boolean
  readonly width?: number | undefined
}

/** The summary of a training, for a reader. No line break at the end. */
export function trainingSummary(tally: TrainingTally, ending: TrainingEnding, { color, width }: Layout): string {
  const paint = painter(color)
  const room = Math.max(MIN_WIDTH, Math.min(MAX_WIDTH, width || DEFAULT_WIDTH)) - LABEL
  const labelled = (label: string, lines: readonly string[]) =>
    lines.map((line, place) => `${paint('dim', (place === 0 ? label : '').padEnd(LABEL))}${line}`)
  // A sweep has many trainings, and prints a table at its end, so each gets one line.
  if (tally.start.sweep !== undefined) return [headLine(tally, ending, paint), ...briefly(tally)].join('; ')
  return [
    headLine(tally, ending, paint),
    ...labelled(
      'test',
      testLines(tally.test).flatMap((line) => wrap(line, room)),
    ),
    ...labelled('best', bestLines(tally)),
    ...labelled('curve', curveLines(tally)),
    ...labelled('digest', tally.digest === undefined ? [] : [tally.digest]),
    ...labelled('store', storeLines(tally, paint)),
  ].join('\n')
}

function briefly({ best, test }: TrainingTally): string[] {
  const [validated, tested] = [best && evaluationText(best.summary), test && evaluationText(test)]
  return [...(validated ? [`validation ${validated}`] : []), ...(tested ? [`test ${tested}`] : [])]
}

function headLine(tally: TrainingTally, { error, interrupted }: TrainingEnding, paint: Paint): string {
  const { id, epoch, updates, episodes, sessionEpisodes, elapsedMs } = tally.snapshot()
  const [state, format, word] = error
    ? (['failed', 'red', 'after'] as const)
    : interrupted
      ? (['interrupted', 'red', 'after'] as const)
      : (['finished', 'green', 'in'] as const)
  const time = `${word} ${clock(elapsedMs)}`
  const hasSpeed = elapsedMs >= SPEED_AFTER_MS && sessionEpisodes > 0
  const speed = hasSpeed ? `, ${rate((1000 * sessionEpisodes) / elapsedMs)}` : ''
  const figures = `${counted(epoch, 'epoch')}, ${counted(updates, 'update')}, ${counted(episodes, 'episode')}`
  const head = `training ${escapeControls(id)} ${paint(format, state)}`
  if (tally.start.updates.length === 0) return `${head} ${time}: ${figures}${speed}`
  return `${head}: ${figures}; this session: ${counted(sessionEpisodes, 'episode')} ${time}${speed}`
}

/** `96.2 % [95.1, 97.0] by version 24; 8.1 % [7.0, 9.4] before training; difference 88.1 points [86.0, 90.3]` */
function testLines(test: TestReport | undefined): string[] {
  const after = test && evaluationText(test)
  if (test === undefined || after === undefined) return []
  const before = evaluationText(test.before)
  const measure = test.success ? 'success' : 'reward'
  const points = test.success ? ' points' : ''
  const difference = test.difference ? `; difference ${figureText(test.difference, measure).replace(' %', points)}` : ''
  if (test.version === 0) return [`${after}: no version is better than the first one`]
  return [
    `${after} by version ${test.version}${before === undefined ? '' : `; ${before} before training${difference}`}`,
  ]
}

function bestLines(tally: TrainingTally): string[] {
  const { best } = tally
  const text = best && evaluationText(best.summary)
  return text === undefined ? [] : [`version ${best!.version}: ${text} on validation`]
}

function curveLines(tally: TrainingTally): string[] {
  const { curve, measure } = tally.snapshot()
  const [first, last] = [curve[0], curve.at(-1)]
  if (first === undefined || last === undefined || curve.length < 2) return []
  const bars = curveText(curve, measure, CURVE_BARS)
  return [`${bars}  ${measure} ${valueText(first, measure)} to ${valueText(last, measure)}`]
}

function storeLines({ start: { id, file }, digest }: TrainingTally, paint: Paint): string[] {
  if (file === undefined) return []
  const command = (...words: string[]) => paint('cyan', [...ownCommand(), ...words].map(shellWord).join(' '))
  const named = runArgument(id, file)
  const commands = digest === undefined ? [] : [command('export', named, '--policy', 'FOLDER')]
  return [firstLine(file), command('show', named), ...commands]
}
