import type { Step } from '../trajectory/step.ts'
import { BlobReader } from './blobs.ts'
import { STEP_SPAN } from './keys.ts'
import type { DatabaseSync } from './sqlite.ts'
import { STEP_COLUMNS, StepDecoder, type StepRow } from './step-rows.ts'

/** A step with the task and the attempt that recorded it. */
export interface SeenStep {
  readonly id: string
  readonly attempt: number
  readonly step: Step
}

interface OpenStart {
  readonly id: string
  readonly attempt: number
  readonly task: number
  readonly decoder: StepDecoder
  /** The last step that was read. */
  key: number
}

/** Follows the steps of a run while they are written. Starts are looked at until their attempt has ended. */
export class StepTail {
  readonly #db: DatabaseSync
  readonly #range: readonly [from: number, before: number]
  readonly #open = new Map<number, OpenStart>()
  #lastStart = 0

  constructor(db: DatabaseSync, range: readonly [from: number, before: number]) {
    this.#db = db
    this.#range = range
  }

  /** Steps that were written since the last call. */
  *next(): Generator<SeenStep> {
    const starts = this.#db.prepare(
      `SELECT b.start, b.task, b.attempt, t.id FROM _starts b JOIN _tasks t USING (task)
       WHERE b.start > ? AND b.task >= ? AND b.task < ? ORDER BY b.start`,
    )
    for (const row of starts.all(this.#lastStart, ...this.#range) as unknown as (OpenStart & { start: number })[]) {
      this.#lastStart = row.start
      const { start, id, attempt, task } = row
      const decoder = new StepDecoder(new BlobReader(this.#db))
      this.#open.set(start, { id, attempt, task, decoder, key: start * STEP_SPAN - 1 })
    }
    const hasEnded = this.#db.prepare('SELECT 1 FROM _attempts WHERE task = ? AND start = ?')
    const steps = this.#db.prepare(`SELECT ${STEP_COLUMNS} FROM _steps WHERE key > ? AND key < ? ORDER BY key`)
    for (const [start, open] of this.#open) {
      // First this: what is written before the end is there when the end is.
      const ended = hasEnded.get(open.task, start) !== undefined
      for (const row of steps.all(open.key, (start + 1) * STEP_SPAN) as unknown as (StepRow & { key: number })[]) {
        open.key = row.key
        yield { id: open.id, attempt: open.attempt, step: open.decoder.next(row) }
      }
      if (ended) this.#open.delete(start)
    }
  }
}
