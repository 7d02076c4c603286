import { firstLine } from '../../../text/escape-controls.ts'
import { painter } from '../../../text/paint.ts'
import { problemLines } from '../../../text/problem-lines.ts'
import { bytes, clock, count } from '../../../text/quantities.ts'
import { type Column, table } from '../../../text/table.ts'
import { displayWidth, padEnd, padStart } from '../../../text/width.ts'
import type { NodeRow, UsableNode } from './node-row.ts'

const MIN_WIDTH = 40
const MEGABYTE = 2 ** 20

const ADDRESS: Column<NodeRow> = { title: 'node', align: padEnd, rank: 0, text: ({ address }) => firstLine(address) }

/** A column that is empty for a node that cannot be used. */
const ofUsable = (
  column: Omit<Column<UsableNode>, 'format' | 'align'> & { align?: typeof padEnd },
): Column<NodeRow> => ({
  align: padStart,
  ...column,
  text: (row) => (row.state === 'unusable' ? '' : column.text(row)),
})

const COLUMNS: readonly Column<NodeRow>[] = [
  ADDRESS,
  {
    ...ofUsable({ title: 'state', align: padEnd, rank: 1, text: ({ state }) => firstLine(state) }),
    format: ({ state }) => (state === 'up' ? 'green' : 'yellow'),
  },
  ofUsable({ title: 'workers', rank: 2, text: ({ workersInUse, workers }) => `${workersInUse}/${workers}` }),
  ofUsable({ title: 'tasks', rank: 3, text: ({ tasks }) => count(tasks) }),
  ofUsable({ title: 'drivers', rank: 6, text: ({ drivers }) => count(drivers.length) }),
  ofUsable({ title: 'load/cores', rank: 4, text: ({ loadAverage, cores }) => `${loadAverage.toFixed(1)}/${cores}` }),
  ofUsable({ title: 'memory free', rank: 5, text: ({ freeMemoryMb }) => bytes(freeMemoryMb * MEGABYTE) }),
  ofUsable({ title: 'up for', rank: 8, text: ({ upSeconds }) => clock(1000 * upSeconds) }),
  ofUsable({ title: 'version', align: padEnd, rank: 7, text: ({ version }) => firstLine(version) }),
  ofUsable({ title: 'Node', align: padEnd, rank: 10, text: ({ node }) => firstLine(node) }),
  ofUsable({ title: 'platform', align: padEnd, rank: 11, text: ({ platform }) => firstLine(platform) }),
  ofUsable({
    ...{ title: 'labels', align: padEnd, rank: 9, narrowest: 6 },
    text: ({ labels }) => firstLine(labels.join(',')),
  }),
]

type Driver = UsableNode['drivers'][number] & { readonly address: string }

const DRIVER_COLUMNS: readonly Column<Driver>[] = [
  { title: 'driver', align: padEnd, rank: 0, text: ({ driver }) => firstLine(driver) },
  { title: 'on node', align: padEnd, rank: 1, text: ({ address }) => firstLine(address) },
  {
    ...{ title: 'state', align: padEnd, rank: 2, text: ({ connected }) => (connected ? 'connected' : 'away') },
    format: ({ connected }) => (connected ? 'green' : 'yellow'),
  },
  { title: 'workers', align: padStart, rank: 4, text: ({ workers }) => count(workers) },
  { title: 'tasks', align: padStart, rank: 3, text: ({ tasks }) => count(tasks) },
  { title: 'for', align: padStart, rank: 5, text: ({ seconds }) => clock(1000 * seconds) },
]

/** The nodes as a table and, if they have drivers, a table of the drivers below it. Ends with a line break. */
export function renderNodes(
  rows: readonly NodeRow[],
  { color, width }: { readonly color: boolean; readonly width: number },
): string {
  const look = { paint: painter(color), room: Math.max(MIN_WIDTH, width) }
  const anyUsable = rows.some(({ state }) => state !== 'unusable')
  const nodes = table(rows, anyUsable ? COLUMNS : [ADDRESS], look)
  const margin = Math.max(...[ADDRESS.title, ...rows.map(({ address }) => firstLine(address))].map(displayWidth))
  const lines = rows.flatMap((row, place) =>
    row.state === 'unusable' ? problemLines(row.address, row.problem, margin, look) : [nodes.lines[place]!],
  )
  const drivers = rows.flatMap((row) =>
    row.state === 'unusable' ? [] : row.drivers.map((driver) => ({ ...driver, address: row.address })),
  )
  const below = drivers.length === 0 ? undefined : table(drivers, DRIVER_COLUMNS, look)
  return `${[nodes.head, ...lines, ...(below ? ['', below.head, ...below.lines] : [])].join('\n')}\n`
}
