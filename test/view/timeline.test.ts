import { expect, test } from 'vitest'
import { type AttemptChunk, ROLES, STATES, type WorkerEntry } from '../../src/view/api.ts'
import { AttemptTable } from '../../web/src/run/attempt-table.ts'
import { type Lane, lanesOf, placesIn, startsAfterUnfinished } from '../../web/src/run/lanes.ts'
import { namedAttempts } from '../../web/src/task/attempts.ts'

type Row = readonly [task: number, worker: number, startedAt: number, endedAt: number | null, state?: string]

function chunkOf(rows: readonly Row[]): AttemptChunk {
  return {
    task: rows.map(([task]) => task),
    worker: rows.map(([, worker]) => worker),
    attempt: rows.map(() => 1),
    role: rows.map((row) => ROLES.indexOf(row[3] === null ? 'unfinished' : 'final')),
    state: rows.map((row) => STATES.indexOf((row[4] ?? (row[3] === null ? 'running' : 'success')) as never)),
    startedAt: rows.map((row) => row[2]),
    endedAt: rows.map((row) => row[3]),
  }
}

const worker = (key: number): WorkerEntry => ({ key, session: 1, id: `w${key}`, host: 'h', pid: undefined })
const WORKERS = new Map([1, 2].map((key) => [key, worker(key)]))

function lanes(rows: readonly Row[], workers: ReadonlyMap<number, WorkerEntry> = WORKERS) {
  const table = new AttemptTable()
  table.merge(chunkOf(rows))
  const triedAgain = startsAfterUnfinished(table)
  return lanesOf(table, workers, { until: (row) => Math.min(1000, triedAgain.get(row) ?? Infinity), triedAgain })
}

const staysOf = ({ stays }: Lane) => [...stays.values()]

test('attempts that overlap are in different slots, others share one', () => {
  const [first, second] = lanes([
    [1, 1, 0, 10],
    [2, 1, 5, 20],
    [3, 1, 10, 15],
    [4, 2, 0, 100],
  ])
  expect([...first!.slot]).toEqual([0, 1, 0])
  expect(first!.slots).toBe(2)
  expect([...second!.rows]).toEqual([3])
})

test('finds attempts that began before what is in sight', () => {
  const [lane] = lanes([
    [1, 1, 0, 500],
    [2, 1, 10, 20],
    [3, 1, 30, 40],
    [4, 1, 600, 700],
  ])
  const [first, end] = placesIn(lane!, 100, 300)
  expect([...lane!.rows.subarray(first, end)]).toContain(0)
  expect([...lane!.rows.subarray(first, end)]).not.toContain(3)
})

test('an attempt that had no end was interrupted when its task was tried again, and its worker was lost', () => {
  const [lost, other] = lanes([
    [1, 1, 0, 10],
    [2, 1, 10, null],
    [2, 2, 50, 60],
  ])
  expect([...lost!.end]).toEqual([10, 50])
  expect(staysOf(lost!)[0]!.lostAt).toBe(50)
  expect(staysOf(other!)[0]!.lostAt).toBeUndefined()
})

test('a worker that goes on after a crash was not lost', () => {
  expect(staysOf(lanes([[1, 1, 0, 10, 'crashed']])[0]!)[0]!.lostAt).toBe(10)
  const [lane] = lanes([
    [1, 1, 0, 10, 'crashed'],
    [2, 1, 20, 30],
  ])
  expect(staysOf(lane!)[0]!.lostAt).toBeUndefined()
})

test('the successor of a lost worker takes its lane, where the loss is marked; a namesake on another machine does not', () => {
  const workers = new Map<number, WorkerEntry>([
    [1, { ...worker(1), id: 'local-0', joinedAt: 0, leftAt: 20, lost: 'signal SIGKILL' }],
    [2, { ...worker(2), id: 'local-1', joinedAt: 0 }],
    [3, { ...worker(3), id: 'local-0', pid: 7, joinedAt: 25 }],
    [4, { ...worker(4), id: 'local-0', host: 'elsewhere', joinedAt: 30 }],
  ])
  const all = lanes(
    [
      [1, 1, 0, 20, 'crashed'],
      [2, 1, 5, null],
      [3, 2, 0, 100],
      [2, 3, 30, 40],
      [5, 9, 1, 2],
    ],
    workers,
  )
  const keys = all.map((lane) => staysOf(lane).map(({ worker }) => worker.key))
  expect(keys).toEqual([[1, 3], [2], [4], []])
  expect(all.map(({ rows }) => [...rows])).toEqual([[0, 1, 3], [2], [], [4]])
  expect(staysOf(all[0]!).map(({ lostAt }) => lostAt)).toEqual([20, undefined])
})

test('a worker that was replaced 50,000 times: each process has its own attempts', () => {
  const COUNT = 50_000
  const rows = Array.from({ length: COUNT }, (_, n): Row => [n, n, 10 * n, 10 * n + 5, 'crashed'])
  const workers = new Map(rows.map(([, key]) => [key, { ...worker(key), id: 'w' }]))
  const [lane] = lanes(rows, workers)
  const stays = staysOf(lane!)
  expect(stays.every(({ places, lostAt }, n) => places.join() === String(n) && lostAt === 10 * n + 5)).toBe(true)
  expect(stays).toHaveLength(COUNT)
}, 20_000)

test('each attempt has the name that its task page has for it, also an interrupted one whose number was given again', () => {
  const table = new AttemptTable()
  table.merge(
    chunkOf([
      [1, 2, 50, 60],
      [2, 1, 0, 9],
      [1, 1, 10, null],
    ]),
  )
  const names = namedAttempts(table.ofTask(1)).map(({ name, details }) => `${name} row ${details.row}`)
  expect(names).toEqual(['1 row 2', '1.1 row 0'])
})

test('an attempt that ends takes the row that it had while it ran; one that is known is not added again', () => {
  const table = new AttemptTable()
  table.merge(chunkOf([[1, 1, 5, null]]))
  table.mergeUnknown(chunkOf([[1, 1, 4, 9]]))
  table.mergeUnknown(
    chunkOf([
      [1, 1, 4, 9],
      [2, 1, 4, 9],
    ]),
  )
  expect(table.count).toBe(2)
  expect(table.column('endedAt')[0]).toBe(9)
})
