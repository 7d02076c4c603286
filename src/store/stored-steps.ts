import { setImmediate as nextTurn } from 'node:timers/promises'
import type { StepSource } from '../response.ts'
import type { Step } from '../trajectory/step.ts'
import { MOST_ELEMENTS_AT_ONCE, StepUnpacker, tooLarge } from '../trajectory/unpack-steps.ts'
import { nextKey } from './ascending.ts'
import { BlobReader, TooManyBytes } from './blobs.ts'
import { keyOf, STEP_SPAN } from './keys.ts'
import type { Begun } from './messages.ts'
import { type RunInStore, withStore } from './read-connections.ts'
import { type DatabaseSync, prepared } from './sqlite.ts'
import { STEP_COLUMNS, StepDecoder, type StepRow } from './step-rows.ts'
import { oldStepsOf } from './stored-shapes.ts'

/** Identifies steps: those of a start, by its number in the store or in a session; or, in version 1, a value of the attempt. */
export type StepsOf =
  | { readonly start: number }
  | { readonly session: Begun; readonly task: number; readonly number: number }
  | { readonly value: unknown }

/** The longest time and the most characters to read before other work on the event loop gets its turn. */
const TURN_MS = 5
const TURN_CHARS = 256 * 1024

/** Steps that are read from the store on each use and not cached. */
export class StoredSteps implements StepSource {
  readonly #from: RunInStore
  readonly #of: StepsOf

  constructor(from: RunInStore, of: StepsOf) {
    this.#from = from
    this.#of = of
  }

  read(): readonly Step[] {
    return withStore(this.#from, (db) => {
      const steps: Step[] = []
      const cursor = new StepCursor(this.#of, 'at once')
      for (let next = cursor.next(db); next; next = cursor.next(db)) steps.push(next.step)
      return steps
    })
  }

  async *stream(): AsyncGenerator<Step> {
    const cursor = new StepCursor(this.#of, 'one by one')
    for (;;) {
      const { turn, done } = withStore(this.#from, (db) => readTurn(cursor, db))
      yield* turn
      if (done) return
      await nextTurn()
    }
  }
}

/** Reads as many steps as fit in one turn of the event loop. */
function readTurn(cursor: StepCursor, db: DatabaseSync): { turn: Step[]; done: boolean } {
  const turn: Step[] = []
  const began = performance.now()
  for (let chars = 0; chars < TURN_CHARS && performance.now() - began < TURN_MS; ) {
    const next = cursor.next(db)
    if (next === undefined) return { turn, done: true }
    turn.push(next.step)
    chars += next.chars
  }
  return { turn, done: false }
}

/** Returns the steps, each with its approximate size. */
export function* stepsIn(db: DatabaseSync, of: StepsOf): Generator<{ step: Step; chars: number }, void> {
  const cursor = new StepCursor(of, 'one by one')
  for (let next = cursor.next(db); next; next = cursor.next(db)) yield next
}

/**
 * A position in the steps of an attempt. It holds no statement, because the connection may be replaced between two steps.
 */
class StepCursor {
  readonly #of: StepsOf
  /** Whether the caller holds all steps at once. If so, their total size is limited. */
  readonly #atOnce: boolean
  readonly #decoder: StepDecoder
  /** The remaining steps of version 1, last first. */
  #old: Step[] | undefined
  #start: number | undefined
  #key = 0
  #blobs: BlobReader | undefined

  constructor(of: StepsOf, how: 'at once' | 'one by one') {
    this.#of = of
    this.#atOnce = how === 'at once'
    this.#decoder = new StepDecoder(new StepUnpacker(this.#atOnce ? MOST_ELEMENTS_AT_ONCE : undefined))
  }

  /** The next step with its approximate size; undefined after the last. */
  next(db: DatabaseSync): { readonly step: Step; readonly chars: number } | undefined {
    if (this.#blobs?.db !== db) this.#blobs = new BlobReader(db)
    const blobs = this.#blobs
    if ('value' in this.#of) return this.#nextOld(blobs, this.#of.value)
    if (this.#start === undefined) {
      this.#start = 'start' in this.#of ? this.#of.start : startOf(db, this.#of)
      if (this.#start === undefined) return undefined
      this.#key = this.#start * STEP_SPAN - 1
    }
    const row = prepared(db, NEXT).get(this.#key, (this.#start + 1) * STEP_SPAN) as KeyedRow | undefined
    if (row === undefined) return undefined
    this.#key = nextKey(row.key, this.#key, 'a step')
    const before = blobs.bytesRead
    if (!this.#atOnce) blobs.refill()
    const step = this.#read(row, blobs)
    const inRow = typeof row.record === 'string' || row.record instanceof Uint8Array ? row.record.length : 0
    return { step, chars: inRow + (row.numbers?.length ?? 0) + blobs.bytesRead - before + 64 }
  }

  #read(row: StepRow, blobs: BlobReader): Step {
    try {
      return this.#decoder.next(row, blobs)
    } catch (error) {
      throw error instanceof TooManyBytes ? tooLarge(error.message) : error
    }
  }

  #nextOld(blobs: BlobReader, value: unknown) {
    this.#old ??= oldStepsOf(blobs.read(value)).reverse()
    const step = this.#old.pop()
    return step && { step, chars: 1024 }
  }
}

type KeyedRow = StepRow & { readonly key: number }

const NEXT = `SELECT ${STEP_COLUMNS} FROM _steps WHERE key > ? AND key < ? ORDER BY key LIMIT 1`
const START = 'SELECT start FROM _starts WHERE task = ? AND epoch = ? AND number = ?'

function startOf(db: DatabaseSync, of: { session: Begun; task: number; number: number }): number | undefined {
  const { run, epoch } = of.session
  const row = prepared(db, START).get(keyOf(run, of.task), epoch, of.number) as { start: number } | undefined
  return row?.start
}
