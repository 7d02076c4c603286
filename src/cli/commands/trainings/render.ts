import { rateText } from '../../../grade/words.ts'
import type { TrainingOverview } from '../../../store/trainings/training-overview.ts'
import { firstLine } from '../../../text/escape-controls.ts'
import { painter } from '../../../text/paint.ts'
import { bytes, count } from '../../../text/quantities.ts'
import { type Column, table } from '../../../text/table.ts'
import { cut, padEnd, padStart } from '../../../text/width.ts'
import { briefEvaluation } from '../../render/evaluation-figures.ts'
import { ago, type RunsLayout, STATUS_COLORS } from '../../render/runs.ts'

/** A training, or one that cannot be read. */
export type TrainingLine =
  | TrainingOverview
  | { readonly id: string; readonly file: string; readonly status: 'unreadable'; readonly problem: string }

const PROBLEM_INDENT = '    '
const MIN_WIDTH = 20
const MAX_ID_WIDTH = 40
const MIN_SCRIPT_WIDTH = 8

const of = (text: (training: TrainingOverview) => string) => (line: TrainingLine) =>
  line.status === 'unreadable' ? '' : text(line)

const columnsAt = (now: number): readonly Column<TrainingLine>[] => [
  { title: 'training', align: padEnd, rank: 0, text: ({ id }) => cut(firstLine(id), MAX_ID_WIDTH) },
  {
    ...{ title: 'status', align: padEnd, rank: 1, text: ({ status }) => status },
    format: ({ status }) => STATUS_COLORS[status],
  },
  { title: 'started', align: padEnd, rank: 7, text: of(({ startedAt }) => ago(startedAt, now)) },
  { title: 'updates', align: padStart, rank: 2, text: of(({ updates }) => count(updates)) },
  { title: 'epoch', align: padStart, rank: 8, text: of(({ epoch }) => count(epoch)) },
  { title: 'solved', align: padStart, rank: 3, text: of(collected) },
  { title: 'validation', align: padStart, rank: 4, text: of(({ validation }) => briefEvaluation(validation?.summary)) },
  { title: 'test', align: padStart, rank: 5, text: of(({ test }) => briefEvaluation(test?.summary)) },
  { title: 'best', align: padStart, rank: 6, text: of(({ best }) => (best === undefined ? '' : `v${best}`)) },
  { title: 'weights', align: padStart, rank: 10, text: of((training) => bytes(training.bytes)) },
  {
    ...{ title: 'agent', align: padEnd, rank: 9, narrowest: MIN_SCRIPT_WIDTH },
    text: of(({ agent }) => firstLine(agent)),
  },
]

/** The success rate; the reward if no episode was judged. */
function collected({ successRate, reward }: TrainingOverview): string {
  return successRate === undefined ? (reward?.toFixed(3) ?? '') : rateText(successRate)
}

/** The trainings as a table. No line break at the end. */
export function renderTrainings(rows: readonly TrainingLine[], { color, width, now }: RunsLayout): string {
  const paint = painter(color)
  const room = Math.max(MIN_WIDTH, width)
  const { head, lines } = table(rows, columnsAt(now), { room, paint })
  const withProblems = rows.flatMap((row, place) => {
    const problem = row.status === 'unreadable' ? row.problem : row.status === 'failed' ? row.error : undefined
    const below = problem === undefined ? [] : [paint('red', PROBLEM_INDENT + cut(firstLine(problem), room - 4))]
    return [lines[place]!, ...below]
  })
  return [head, ...withProblems].join('\n')
}
