import type { Step } from '../trajectory/step.ts'
import { StepUnpacker } from '../trajectory/unpack-steps.ts'
import { nextKey } from './ascending.ts'
import { BlobReader } from './blobs.ts'
import { STEP_SPAN } from './keys.ts'
import type { DatabaseSync } from './sqlite.ts'
import { STEP_COLUMNS, StepDecoder, type StepRow } from './step-rows.ts'
import { type Columns, checkedRow, isText, isWhole } from './stored-shapes.ts'

/** A step with the task and the attempt that recorded it. */
export interface SeenStep {
  readonly id: string
  readonly attempt: number
  readonly step: Step
}

interface StartColumns {
  readonly start: number
  readonly id: string
  readonly attempt: number
  readonly task: number
}

const START: Columns<StartColumns> = { start: isWhole, id: isText, attempt: isWhole, task: isWhole }

interface OpenStart extends StartColumns {
  readonly decoder: StepDecoder
  /** The key of the last step that was read. */
  key: number
}

/** Follows the steps of a run while they are written. A start is polled until its attempt has ended. */
export class StepTail {
  readonly #db: DatabaseSync
  readonly #range: readonly [from: number, before: number]
  /** Turns any error into a ManyworldsError. */
  readonly #reading: <T>(read: () => T) => T
  readonly #blobs: BlobReader
  readonly #open = new Map<number, OpenStart>()
  #lastStart = 0

  constructor(db: DatabaseSync, range: readonly [from: number, before: number], reading: <T>(read: () => T) => T) {
    this.#db = db
    this.#blobs = new BlobReader(db)
    this.#range = range
    this.#reading = reading
  }

  /** Returns the steps written since the last call. */
  *next(): Generator<SeenStep> {
    this.#reading(() => this.#findStarts())
    const hasEnded = this.#db.prepare('SELECT 1 FROM _attempts WHERE task = ? AND start = ?')
    const next = this.#db.prepare(`SELECT ${STEP_COLUMNS} FROM _steps WHERE key > ? AND key < ? ORDER BY key LIMIT 1`)
    for (const open of this.#open.values()) {
      const { start, id, attempt, task } = open
      // Check this first: all steps are written before the end of the attempt.
      const ended = this.#reading(() => hasEnded.get(task, start) !== undefined)
      const read = (): Step | undefined => {
        const row = next.get(open.key, (start + 1) * STEP_SPAN) as (StepRow & { key: number }) | undefined
        if (row === undefined) return undefined
        open.key = nextKey(row.key, open.key, 'a step')
        this.#blobs.refill()
        return open.decoder.next(row, this.#blobs)
      }
      for (let step = this.#reading(read); step; step = this.#reading(read)) yield { id, attempt, step }
      if (ended) this.#open.delete(start)
    }
  }

  #findStarts(): void {
    const starts = this.#db.prepare(
      `SELECT b.start, b.task, b.attempt, t.id FROM _starts b JOIN _tasks t USING (task)
       WHERE b.start > ? AND b.task >= ? AND b.task < ? ORDER BY b.start`,
    )
    for (const row of starts.all(this.#lastStart, ...this.#range)) {
      const columns = checkedRow(row, START, 'a start')
      const { start } = columns
      this.#lastStart = nextKey(start, this.#lastStart, 'a start')
      const decoder = new StepDecoder(new StepUnpacker())
      this.#open.set(start, { ...columns, decoder, key: start * STEP_SPAN - 1 })
    }
  }
}
