import type { Comparison, UsageFigure, UsedBy } from '../../../grade/compare.ts'
import type { EvaluationSummary } from '../../../grade/summarize.ts'
import { describeRate, describeReward } from '../../../grade/words.ts'
import { oneLine } from '../../../text/escape-controls.ts'
import type { Paint } from '../../../text/paint.ts'
import { count, counted, duration } from '../../../text/quantities.ts'
import { displayWidth, padEnd, padStart } from '../../../text/width.ts'
import { wrap } from '../../../text/wrap.ts'

interface Layout {
  readonly names: readonly [a: string, b: string]
  readonly summaries: readonly [a: EvaluationSummary, b: EvaluationSummary]
  /** How many of the tasks that changed sides to list. */
  readonly flips: number
  readonly paint: Paint
  readonly width: number
}

const FIGURES: readonly [figure: UsageFigure, label: string, text: (value: number) => string][] = [
  ['inputTokens', 'tokens in', count],
  ['outputTokens', 'tokens out', count],
  ['cachedTokens', 'tokens cached', count],
  ['costUsd', 'cost', (usd) => `$${usd.toFixed(4)}`],
  ['runMs', 'run time', duration],
]

/** Two runs side by side: first the verdict, then the figures behind it. */
export function* renderComparison(comparison: Comparison, layout: Layout): Generator<string> {
  const { paint, width } = layout
  const { success } = comparison
  const color = success === null || (success.low <= 0 && success.high >= 0) ? 'yellow' : 'green'
  for (const line of wrap(oneLine(comparison.verdict), width)) yield paint(color, line)
  if (hasNoVerdict(comparison)) yield paint('dim', '--anyway compares them all the same')
  yield ''
  yield* figures(comparison, layout)
  if (!hasNoVerdict(comparison)) yield* flips(comparison, layout)
  for (const text of [...leftOut(comparison, layout.names), ...comparison.warnings])
    for (const line of wrap(oneLine(text), width)) yield paint('dim', line)
}

/** The runs cannot be compared, and nobody asked to do it anyway. */
const hasNoVerdict = ({ differs, success, tasks }: Comparison): boolean =>
  success === null && tasks > 0 && (differs.tasks.length > 0 || differs.graders.length > 0)

function* figures({ usage }: Comparison, { names, summaries: [a, b], paint }: Layout): Generator<string> {
  const rate = ({ success }: EvaluationSummary) => (success ? describeRate(success) : 'nothing graded')
  const reward = ({ reward }: EvaluationSummary) => (reward ? describeReward(reward) : '')
  const rows: [label: string, a: string, b: string][] = [
    ['', oneLine(names[0]), oneLine(names[1])],
    ['solved', rate(a), rate(b)],
  ]
  if (a.reward || b.reward) rows.push(['reward', reward(a), reward(b)])
  for (const [figure, label, text] of FIGURES) {
    const used = usage[figure] as UsedBy | null
    if (used) rows.push([label, text(used.a), text(used.b)])
  }
  const widths = [0, 1, 2].map((column) => Math.max(...rows.map((row) => displayWidth(row[column]!))))
  for (const [label, left, right] of rows)
    yield `${paint('dim', padEnd(label, widths[0]!))}  ${padStart(left, widths[1]!)}  ${padStart(right, widths[2]!)}`
}

function* flips({ flips: { toSolved, toUnsolved } }: Comparison, { flips, paint }: Layout): Generator<string> {
  const of = (ids: readonly string[], what: string, color: 'green' | 'red') => {
    const shown = ids.slice(0, flips).map(oneLine)
    const more = ids.length - shown.length
    const tail = more > 0 && shown.length > 0 ? ` and ${count(more)} more` : ''
    return `${paint(color, `${counted(ids.length, 'task')} ${what}`)}${shown.length > 0 ? `: ${shown.join(', ')}${tail}` : ''}`
  }
  yield ''
  yield of(toSolved, 'from unsolved to solved', 'green')
  yield of(toUnsolved, 'from solved to unsolved', 'red')
}

function leftOut({ onlyInA, onlyInB, withoutResult }: Comparison, [a, b]: readonly [string, string]): string[] {
  return [
    ...(onlyInA.length > 0 ? [`left out: ${counted(onlyInA.length, 'task')} that only ${a} has`] : []),
    ...(onlyInB.length > 0 ? [`left out: ${counted(onlyInB.length, 'task')} that only ${b} has`] : []),
    ...(withoutResult.length > 0
      ? [`left out: ${counted(withoutResult.length, 'task')} without a result in one of the runs`]
      : []),
  ]
}
