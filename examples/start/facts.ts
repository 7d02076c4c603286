import { DatabaseSync } from 'node:sqlite'
import { RunFile } from 'manyworlds/runs'
import type { DeskObservation, DeskTask } from '../tool-desk/desk.ts'

/** The longest line that shows what an agent did. */
const MAX_CHARS = 90

/** What the store says of a training. Its views are for everybody; the runs of updates are named `TRAINING.u00000` and so on. */
export class Facts {
  readonly #db: DatabaseSync
  readonly #file: string
  readonly #training: string

  constructor(file: string, training: string) {
    this.#db = new DatabaseSync(file, { readOnly: true, timeout: 10_000 })
    this.#file = file
    this.#training = training
  }

  /** A worker that has answered in an update. */
  worker(update: number): { readonly id: string; readonly pid: number } | undefined {
    return this.#one<{ id: string; pid: number }>(
      'SELECT w.id, w.pid FROM plans p JOIN workers w USING (run_id) WHERE p.training = ? AND p.number = ? ORDER BY w.id DESC',
      [this.#training, update],
    )
  }

  /** Of the episodes of all updates: how many were started again; how many no update has learned from, or more than one. */
  episodes(): { readonly rerun: number; readonly lost: number; readonly twice: number } {
    const starts = this.#one<Counted>(
      "SELECT count(*) AS n, count(DISTINCT run_id || ' ' || id) AS different FROM starts WHERE run_id GLOB ?",
      [`${this.#training}.u*`],
    )!
    const planned = this.#one<{ n: number }>('SELECT count(*) AS n FROM tasks WHERE run_id GLOB ?', [
      `${this.#training}.u*`,
    ])!
    const learned = this.#one<Counted>(
      `SELECT count(*) AS n, count(DISTINCT u.number || ' ' || (m.value ->> 0) || ' ' || (m.value ->> 1)) AS different
       FROM updates u, json_each(u.members) m WHERE u.training = ?`,
      [this.#training],
    )!
    return {
      rerun: starts.n - starts.different,
      lost: planned.n - learned.different,
      twice: learned.n - learned.different,
    }
  }

  /** How many seconds the episodes of all updates took, each by itself, and how many it took to collect them. */
  collection(): { readonly own: number; readonly wall: number } {
    const { ms: own } = this.#one<{ ms: number }>('SELECT sum(run_ms) AS ms FROM responses WHERE run_id GLOB ?', [
      `${this.#training}.u*`,
    ])!
    const { ms: wall } = this.#one<{ ms: number }>('SELECT sum(collect_ms) AS ms FROM updates WHERE training = ?', [
      this.#training,
    ])!
    return { own: own / 1000, wall: wall / 1000 }
  }

  /** A test task that a version solves and the first one does not, with the same random numbers: what each of them did. */
  beforeAndAfter(
    version: number,
  ): { readonly task: string; readonly before: string; readonly after: string } | undefined {
    const [first, last] = [0, version].map((of) => `${this.#training}.v${String(of).padStart(5, '0')}.test`) as [
      string,
      string,
    ]
    const solved = 'SELECT id FROM responses WHERE run_id = ? AND success'
    const ids = this.#db.prepare(`${solved} EXCEPT ${solved} ORDER BY id`).all(last, first) as { id: string }[]
    for (const { id } of ids) {
      const [before, after] = [first, last].map((run) => this.#calls(run, id)) as [Calls, Calls]
      if (Math.max(before.calls.length, after.calls.length) <= MAX_CHARS)
        return { task: after.task, before: before.calls, after: after.calls }
    }
    return undefined
  }

  close(): void {
    this.#db.close()
  }

  #one<T>(sql: string, values: readonly (string | number)[]): T | undefined {
    return this.#db.prepare(sql).get(...values) as T | undefined
  }

  /** The calls of an episode, each with the number that it put on top of the others. */
  #calls(run: string, id: string): Calls {
    const file = RunFile.in(this.#file, run)!
    const { input, response } = file.task(id)!
    const steps = response!.trajectory.filter((step) => step.kind === 'action')
    const seen = [...steps.slice(1).map(({ observation }) => observation), response!.answer] as DeskObservation[]
    const calls = steps.map(({ action }, index) => {
      const call = String(action).replace('lookup ', '')
      const { numbers } = seen[index]!
      return numbers.length > 0 && !IDLE.has(call) ? `${call} ${numbers.at(-1)}` : call
    })
    file.close()
    return { task: (input as DeskTask).instruction, calls: calls.join(', ') }
  }
}

interface Counted {
  readonly n: number
  readonly different: number
}

interface Calls {
  readonly task: string
  readonly calls: string
}

/** Tools that put no number on the desk. */
const IDLE = new Set(['staple', 'phone'])
