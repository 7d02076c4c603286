import type { RunFile } from '../../store/run-file.ts'
import { safeJson } from '../../text/json.ts'
import type { Trajectory } from '../../trajectory/trajectory.ts'
import { type AtifTrajectory, toAtif } from '../atif/to-atif.ts'
import type { Column, Table } from '../columns.ts'
import type { ExperienceFormat } from '../formats.ts'
import { conversationsOf } from './conversations.ts'
import { groupsOf } from './groups.ts'
import { type LeftOut, REASONS, type Reason } from './left-out.ts'
import { type PreferenceOptions, preferences } from './preferences.ts'
import type { Selector } from './selection.ts'
import { TOKEN_COLUMNS } from './token-columns.ts'
import { type TokenSample, tokenSamples } from './token-samples.ts'

/** A row of an export, and the trajectory it was made from. */
export interface ExportRow<Row> {
  readonly row: Row
  readonly trajectory: Trajectory
}

/** The experience of a run as a table, for a learner. Trajectories that are left out are counted in `leftOut`. */
export function experienceTable(
  run: RunFile,
  format: ExperienceFormat,
  select: Selector,
  leftOut: LeftOut,
  options: PreferenceOptions = {},
): Table<never> {
  const rowsBy = <Row>(make: (trajectory: Trajectory) => readonly Row[] | Reason) => made(run, select, leftOut, make)
  const base = { what: format, runId: run.runId, nameOf }
  const lines = <Row extends object>(rows: () => AsyncIterable<ExportRow<Row>>) => ({
    columns: [],
    rows,
    line: ({ row }: ExportRow<Row>) => jsonLine(row),
  })
  const make = () => {
    if (format === 'atif') return lines(() => rowsBy(documents))
    if (format === 'sft') return lines(() => rowsBy(conversationsOf))
    if (format === 'preference') return lines(() => preferences(run, select, leftOut, options))
    return tokenTable(run, format, rowsBy)
  }
  return { ...base, ...make() } as unknown as Table<never>
}

type RowsBy = <Row>(make: (trajectory: Trajectory) => readonly Row[] | Reason) => AsyncIterable<ExportRow<Row>>

function tokenTable(run: RunFile, format: 'verl' | 'trl' | 'prime-rl', rowsBy: RowsBy) {
  const own: readonly Column<TokenSample>[] = TOKEN_COLUMNS[format]
  const columns = own.map(
    ({ name, type, value }): Column<ExportRow<TokenSample>> => ({ name, type, value: ({ row }, id) => value(row, id) }),
  )
  return {
    columns,
    rows: () => {
      const means = format === 'prime-rl' ? groupMeans(run) : undefined
      return rowsBy((trajectory) => tokenSamples(trajectory, (group) => means?.get(group)))
    },
    line: ({ row }: ExportRow<TokenSample>) =>
      jsonLine(Object.fromEntries(own.map(({ name, value }) => [name, value(row, run.runId) ?? null]))),
  }
}

const documents = (trajectory: Trajectory): readonly AtifTrajectory[] | Reason =>
  trajectory.steps.length === 0 ? REASONS.noSteps : [toAtif(trajectory)]

async function* made<Row>(
  run: RunFile,
  select: Selector,
  leftOut: LeftOut,
  make: (trajectory: Trajectory) => readonly Row[] | Reason,
): AsyncGenerator<ExportRow<Row>> {
  const removed = () => leftOut.add(REASONS.removedSteps)
  for await (const trajectory of run.trajectories({ removed })) {
    const rows = select(trajectory) ?? make(trajectory)
    if ('one' in rows) leftOut.add(rows)
    else for (const row of rows) yield { row, trajectory }
  }
}

/** The mean reward of each group with two or more rewards. */
function groupMeans(run: RunFile): Map<string, number> {
  const groups = [...groupsOf(run)].map(
    ([id, members]) => [id, members.map(({ reward }) => reward).filter((reward) => reward !== null)] as const,
  )
  const several = groups.filter(([, rewards]) => rewards.length > 1)
  return new Map(several.map(([id, rewards]) => [id, rewards.reduce((a, b) => a + b, 0) / rewards.length]))
}

const nameOf = ({ trajectory }: ExportRow<unknown>) => `the trajectory of task '${trajectory.id}'`

function* jsonLine(value: object): Generator<string> {
  yield `${safeJson(JSON.stringify(value))}\n`
}
