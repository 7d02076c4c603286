import { firstLine } from '../../../text/escape-controls.ts'
import { painter } from '../../../text/paint.ts'
import { problemLines } from '../../../text/problem-lines.ts'
import { count, duration } from '../../../text/quantities.ts'
import { type Column, table } from '../../../text/table.ts'
import { displayWidth, padEnd, padStart } from '../../../text/width.ts'
import type { ModelRow, UsableModel } from './model-row.ts'

const MIN_WIDTH = 40

const NAME: Column<ModelRow> = { title: 'name', align: padEnd, rank: 0, text: ({ name }) => firstLine(name) }

/** A column that is empty for a model that did not answer. */
const ofUsable = (
  column: Omit<Column<UsableModel>, 'format' | 'align'> & { align?: typeof padEnd },
): Column<ModelRow> => ({
  align: padEnd,
  ...column,
  text: (row) => (row.ok ? column.text(row) : ''),
})

type Ability = 'tokenIds' | 'logProbs' | 'toolCalls' | 'structuredOutput' | 'usage'

const ability = (title: string, key: Ability, rank: number): Column<ModelRow> => ({
  ...ofUsable({ title, rank, text: (row) => (row[key] === null ? '?' : row[key] ? 'yes' : 'no') }),
  format: (row) => (row.ok && row[key] === true ? 'green' : row.ok && row[key] === null ? 'yellow' : 'dim'),
})

const COLUMNS: readonly Column<ModelRow>[] = [
  NAME,
  ofUsable({ title: 'model', rank: 1, text: ({ model }) => firstLine(model) }),
  ofUsable({ title: 'where', rank: 9, text: ({ url }) => firstLine(url) }),
  ofUsable({ title: 'via', rank: 8, text: ({ via }) => via }),
  ofUsable({ title: 'latency', align: padStart, rank: 2, text: ({ latencyMs }) => duration(latencyMs) }),
  ability('token ids', 'tokenIds', 4),
  ability('log-probs', 'logProbs', 5),
  ability('tools', 'toolCalls', 3),
  ability('JSON schema', 'structuredOutput', 6),
  ability('usage', 'usage', 10),
  ofUsable({ title: 'limits', rank: 7, narrowest: 12, text: limitsText }),
]

function limitsText({ limits: { requestsPerMinute, tokensPerMinute, maxConcurrent } }: UsableModel): string {
  const parts = [
    requestsPerMinute === undefined ? '' : `${count(requestsPerMinute)} requests/min`,
    tokensPerMinute === undefined ? '' : `${count(tokensPerMinute)} tokens/min`,
    maxConcurrent === undefined ? '' : `${count(maxConcurrent)} at once`,
  ].filter((part) => part !== '')
  return parts.length === 0 ? 'unknown: learned during the run' : parts.join(', ')
}

/** The models as a table that ends with a line break. */
export function renderModels(
  rows: readonly ModelRow[],
  { color, width }: { readonly color: boolean; readonly width: number },
): string {
  const look = { paint: painter(color), room: Math.max(MIN_WIDTH, width) }
  const { head, lines } = table(rows, rows.some(({ ok }) => ok) ? COLUMNS : [NAME], look)
  const margin = Math.max(...[NAME.title, ...rows.map(({ name }) => firstLine(name))].map(displayWidth))
  const shown = rows.flatMap((row, place) =>
    row.ok ? [lines[place]!] : problemLines(row.name, `${row.problem} [${row.code}]`, margin, look),
  )
  return `${[head, ...shown].join('\n')}\n`
}
