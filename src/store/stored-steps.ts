import { existsSync, statSync } from 'node:fs'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { ManyworldsError } from '../errors.ts'
import type { StepSource } from '../response.ts'
import type { Step } from '../trajectory/step.ts'
import { BlobReader } from './blobs.ts'
import { keyOf, STEP_SPAN } from './keys.ts'
import type { Begun } from './messages.ts'
import { openForReading } from './open-for-reading.ts'
import { type DatabaseSync, prepared } from './sqlite.ts'
import { STEP_COLUMNS, StepDecoder, type StepRow } from './step-rows.ts'
import { storeError } from './store-errors.ts'
import { oldStepsOf } from './stored-shapes.ts'

/** Which steps: those of a start by its number in the store, or in a session; or the value that version 1 has instead. */
export type StepsOf =
  | { readonly start: number }
  | { readonly session: Begun; readonly task: number; readonly number: number }
  | { readonly value: unknown }

/** The store, and the run in it: another run may have its number once it is removed. */
export interface StepsFrom {
  readonly path: string
  readonly run: Pick<Begun, 'run' | 'createdAt'>
  /** A connection of whoever made the response, as long as that is open. */
  db?(): DatabaseSync | undefined
}

/** Between two turns of the event loop, steps are read for so long, and at most so many characters of them. */
const TURN_MS = 5
const TURN_CHARS = 256 * 1024

/** Steps that are read from the store when somebody wants them, and kept by nobody. */
export class StoredSteps implements StepSource {
  readonly #from: StepsFrom
  readonly #of: StepsOf

  constructor(from: StepsFrom, of: StepsOf) {
    this.#from = from
    this.#of = of
  }

  read(): readonly Step[] {
    return withStore(this.#from, (db) => [...stepsIn(db, this.#of)].map(({ step }) => step))
  }

  async *stream(): AsyncGenerator<Step> {
    let reader: { readonly db: DatabaseSync; readonly steps: SizedSteps } | undefined
    for (let read = 0; ; ) {
      const { turn, done } = withStore(this.#from, (db) => {
        // Whoever takes a step now and then finds another connection each time.
        if (reader?.db !== db) reader = { db, steps: skip(read, stepsIn(db, this.#of)) }
        return readTurn(reader.steps)
      })
      read += turn.length
      yield* turn
      if (done) return
      await nextTurn()
    }
  }
}

type SizedSteps = Iterator<{ readonly step: Step; readonly chars: number }>

function skip(count: number, steps: SizedSteps): SizedSteps {
  for (let i = 0; i < count; i++) steps.next()
  return steps
}

/** What can be read in one turn of the event loop. */
function readTurn(steps: SizedSteps): { turn: Step[]; done: boolean } {
  const turn: Step[] = []
  const began = performance.now()
  for (let chars = 0; chars < TURN_CHARS && performance.now() - began < TURN_MS; ) {
    const { done, value } = steps.next()
    if (done) return { turn, done: true }
    turn.push(value.step)
    chars += value.chars
  }
  return { turn, done: false }
}

/** The steps, each with its rough size. */
export function* stepsIn(db: DatabaseSync, of: StepsOf): Generator<{ step: Step; chars: number }, void> {
  const blobs = new BlobReader(db)
  if ('value' in of) {
    for (const step of oldStepsOf(blobs.read(of.value))) yield { step, chars: 1024 }
    return
  }
  const start = 'start' in of ? of.start : startOf(db, of)
  if (start === undefined) return
  const decoder = new StepDecoder(blobs)
  // One by one, and not by an iterator that is kept open: the store may be written to between two of them.
  const next = prepared(db, `SELECT ${STEP_COLUMNS} FROM _steps WHERE key > ? AND key < ? ORDER BY key LIMIT 1`)
  for (let key = start * STEP_SPAN - 1; ; ) {
    const row = next.get(key, (start + 1) * STEP_SPAN) as (StepRow & { key: number }) | undefined
    if (row === undefined) return
    key = row.key
    const before = blobs.bytesRead
    const size = typeof row.record === 'string' || row.record instanceof Uint8Array ? row.record.length : 0
    yield { step: decoder.next(row), chars: size + blobs.bytesRead - before + 64 }
  }
}

function startOf(db: DatabaseSync, of: { session: Begun; task: number; number: number }): number | undefined {
  const { run, epoch } = of.session
  const row = prepared(db, 'SELECT start FROM _starts WHERE task = ? AND epoch = ? AND number = ?').get(
    keyOf(run, of.task),
    epoch,
    of.number,
  ) as { start: number } | undefined
  return row?.start
}

// ---- one connection to each store that is read from, for as long as somebody reads

const IDLE_MS = 1000
const open = new Map<string, { db: DatabaseSync; inode: number; idle: NodeJS.Timeout }>()

/** The process ends: whoever closes a store last leaves one file. */
export function closeReaders(): void {
  for (const path of [...open.keys()]) close(path)
}

/** Reads with a connection that is open, or one of our own. */
export function withStore<T>(from: StepsFrom, read: (db: DatabaseSync) => T): T {
  const { path } = from
  try {
    const { run, createdAt } = from.run
    const db = from.db?.() ?? connection(path)
    if (!prepared(db, 'SELECT 1 FROM _run WHERE run = ? AND created_at = ?').get(run, createdAt)) throw gone(path)
    return read(db)
  } catch (error) {
    throw existsSync(path) ? storeError(error, path, 'read') : gone(path)
  }
}

function connection(path: string): DatabaseSync {
  const inode = statSync(path, { throwIfNoEntry: false })?.ino
  if (inode === undefined) throw gone(path)
  let store = open.get(path)
  // Another store may have been made in its place.
  if (store && store.inode !== inode) close(path)
  store = open.get(path)
  if (store === undefined) {
    const idle = setTimeout(() => close(path), IDLE_MS).unref()
    store = { db: openForReading(path), inode, idle }
    open.set(path, store)
  }
  store.idle.refresh()
  return store.db
}

function close(path: string): void {
  const store = open.get(path)
  open.delete(path)
  clearTimeout(store?.idle)
  store?.db.close()
}

const gone = (path: string) =>
  new ManyworldsError(
    'STORE_GONE',
    `the run of this response is no longer in ${path}, and its steps were only there; read \`trajectory\` before the run is removed, or use \`store: false\`, with which responses carry their steps`,
  )
