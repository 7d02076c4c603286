import { STATES, type WorkerEntry } from '../../../src/view/api.ts'
import type { AttemptTable } from './attempt-table.ts'
import { sortByKey } from './radix-sort.ts'

/** The most slots of a lane. With more concurrent attempts, slots are shared, because thinner ones would be invisible. */
const MAX_SLOTS = 64

/** A worker process, from when it joined until it left or was lost. */
export interface Stay {
  readonly worker: WorkerEntry
  /** The positions of its attempts in the lane. */
  readonly places: readonly number[]
  /** When the worker was lost; undefined if it was not. */
  readonly lostAt: number | undefined
}

/** The attempts of a worker and of its successors, by their start. Those that overlap in time are in different slots. */
export interface Lane {
  /**
   * Consecutive processes with the same id on the same machine, by key. If each task kills its worker, there are as many
   * as tasks. Empty if the attempts name no worker.
   */
  readonly stays: ReadonlyMap<number, Stay>
  readonly rows: Uint32Array
  readonly start: Float64Array
  /** For attempts in progress: the current time. */
  readonly end: Float64Array
  readonly slot: Uint8Array
  readonly slots: number
  /** The latest end up to each place: to find the first attempt in sight. */
  readonly latestEnd: Float64Array
}

interface Ends {
  /** The assumed end of an unfinished attempt. */
  until(row: number): number
  /** See `startsAfterUnfinished`. */
  readonly triedAgain: ReadonlyMap<number, number>
}

/** Puts attempts into lanes, in the order of the workers' keys. A worker that replaces a lost one has its id, so it takes its lane. */
export function lanesOf(table: AttemptTable, workers: ReadonlyMap<number, WorkerEntry>, ends: Ends): Lane[] {
  const groups = [...Map.groupBy(workers.values(), ({ id, host }) => `${host}\0${id}`).values()]
  const laneOfWorker = new Map(groups.flatMap((group, lane) => group.map(({ key }) => [key, lane] as const)))
  const [worker, startedAt] = [table.column('worker'), table.column('startedAt')]
  const byStart = sortByKey(
    Uint32Array.from({ length: table.count }, (_, row) => row),
    (row) => startedAt[row]!,
  )
  // Attempts without a known worker come last.
  const laneOfRow = (row: number) => laneOfWorker.get(worker[row]!) ?? groups.length
  const sorted = sortByKey(byStart, laneOfRow)
  let to = 0
  const lanes = [...groups, []].map((group, lane) => {
    const from = to
    while (to < sorted.length && laneOfRow(sorted[to]!) === lane) to++
    return laneFor(table, group, sorted.subarray(from, to), ends)
  })
  return lanes.filter(({ stays, rows }) => stays.size > 0 || rows.length > 0)
}

function laneFor(table: AttemptTable, workers: readonly WorkerEntry[], rows: Uint32Array, ends: Ends): Lane {
  const [key, startedAt, endedAt] = [table.column('worker'), table.column('startedAt'), table.column('endedAt')]
  const start = Float64Array.from(rows, (row) => startedAt[row]!)
  const end = Float64Array.from(rows, (row) => (Number.isNaN(endedAt[row]) ? ends.until(row) : endedAt[row]!))
  const [slot, latestEnd] = [new Uint8Array(rows.length), new Float64Array(rows.length)]
  const free: number[] = []
  for (let place = 0; place < rows.length; place++) {
    let at = 0
    while (at < free.length && free[at]! > start[place]!) at++
    slot[place] = at % MAX_SLOTS
    free[at % MAX_SLOTS] = end[place]!
    latestEnd[place] = Math.max(end[place]!, latestEnd[place - 1] ?? -Infinity)
  }
  const placesOf = Map.groupBy(rows.keys(), (place) => key[rows[place]!]!)
  const stayOf = (worker: WorkerEntry): Stay => {
    const places = placesOf.get(worker.key) ?? []
    const isKnown = worker.joinedAt !== undefined || worker.leftAt !== undefined
    if (isKnown) return { worker, places, lostAt: worker.lost === undefined ? undefined : worker.leftAt }
    const own = places.map((place) => rows[place]!)
    return { worker, places, lostAt: whenLost(table, own, ends) }
  }
  const stays = new Map(workers.map((worker) => [worker.key, stayOf(worker)]))
  return { stays, rows, start, end, slot, slots: Math.max(1, free.length), latestEnd }
}

/** The worker of an attempt of a lane. */
export const workerOf = ({ stays }: Lane, table: AttemptTable, row: number): WorkerEntry | undefined =>
  stays.get(table.column('worker')[row]!)?.worker

const CRASHED = STATES.indexOf('crashed')

/**
 * Stores of earlier versions do not record when workers left. A worker is assumed to be lost if its last attempts
 * crashed, or did not end and were repeated on another worker, and if it started none after that.
 */
function whenLost(table: AttemptTable, rows: readonly number[], ends: Ends): number | undefined {
  const [state, startedAt, endedAt] = [table.column('state'), table.column('startedAt'), table.column('endedAt')]
  let at = Infinity
  for (const row of rows) {
    const crashedAt = state[row] === CRASHED ? endedAt[row]! : Infinity
    const lost = Math.min(crashedAt, ends.triedAgain.get(row) ?? Infinity)
    at = Math.min(at, lost)
  }
  return at !== Infinity && startedAt[rows.at(-1)!]! <= at ? at : undefined
}

/** A range of positions in a lane that contains all attempts in a time range. It may also contain others. */
export function placesIn(lane: Lane, from: number, to: number): readonly [first: number, end: number] {
  return [firstAbove(lane.latestEnd, from), firstAbove(lane.start, to)]
}

/** The first place whose value is above a limit, in ascending values. */
export function firstAbove(values: Float64Array, limit: number): number {
  let [low, high] = [0, values.length]
  while (low < high) {
    const middle = (low + high) >> 1
    if (values[middle]! > limit) high = middle
    else low = middle + 1
  }
  return low
}

/** For unfinished attempts: when their task was tried again. They were lost at that time at the latest. */
export function startsAfterUnfinished(table: AttemptTable): ReadonlyMap<number, number> {
  const [task, startedAt, endedAt] = [table.column('task'), table.column('startedAt'), table.column('endedAt')]
  const unfinished = new Map<number, number[]>()
  for (let row = 0; row < table.count; row++)
    if (Number.isNaN(endedAt[row])) unfinished.set(task[row]!, [...(unfinished.get(task[row]!) ?? []), row])
  const next = new Map<number, number>()
  if (unfinished.size === 0) return next
  for (let row = 0; row < table.count; row++)
    for (const open of unfinished.get(task[row]!) ?? [])
      if (startedAt[row]! > startedAt[open]!) next.set(open, Math.min(startedAt[row]!, next.get(open) ?? Infinity))
  return next
}

/** By row: 1 if the task had been tried before, whether that counted as an attempt or not. */
export function repeatsIn(table: AttemptTable): Uint8Array {
  const [task, startedAt] = [table.column('task'), table.column('startedAt')]
  const first = new Map<number, number>()
  for (let row = 0; row < table.count; row++) {
    const known = first.get(task[row]!)
    if (known === undefined || startedAt[row]! < startedAt[known]!) first.set(task[row]!, row)
  }
  const repeats = new Uint8Array(table.count).fill(1)
  for (const row of first.values()) repeats[row] = 0
  return repeats
}
