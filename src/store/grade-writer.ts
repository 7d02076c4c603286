import type { TaskGrade } from '../grade/grade.ts'
import { BlobWriter } from './blobs.ts'
import type { FoundRun } from './find-run.ts'
import { keyOf, RUN_SPAN } from './keys.ts'
import { INSERT_GRADE, resultOfGrade, SET_GRADE } from './row-writer.ts'
import { isSharedStore } from './run-path.ts'
import { lastSession } from './run-writer.ts'
import { ROLE } from './schema.ts'
import { StoreDb } from './store-db.ts'
import { locked, storeError } from './store-errors.ts'
import { encode } from './values.ts'

/** A grade for the response of a task. */
export interface NewGrade {
  readonly id: string
  readonly grade: TaskGrade
}

/** Adds grades to a run that is not in progress. It starts no session, and leaves the status of the run as it was. */
export class GradeWriter implements Disposable {
  readonly #store: StoreDb
  readonly #run: number
  readonly #path: string

  constructor({ path, runId }: FoundRun) {
    this.#path = path
    this.#store = StoreDb.open(path, isSharedStore(path))
    const row = this.#store.statement('SELECT run FROM _run WHERE run_id = ?').get(runId) as { run: number }
    this.#run = row.run
    const last = lastSession(this.#store, this.#run)
    if (last && last.endedAt === null && this.#store.isAlive(last.owner)) {
      this.close()
      throw locked(path, { runId, ...last })
    }
  }

  /** Writes all grades, or none. */
  write(grades: readonly NewGrade[]): void {
    const store = this.#store
    try {
      store.transact(false, () => {
        const blobs = new BlobWriter(store, this.#run)
        let number = this.#lastGrade()
        for (const { id, grade } of grades) {
          const { reward, success, grader } = grade
          const found = store.statement(FINAL).get(id, keyOf(this.#run, 0)) as
            | { task: number; attempt: number }
            | undefined
          if (!found) continue
          const solved = success === null ? null : Number(success)
          const record = blobs.put(encode(grade))
          const key = keyOf(this.#run, ++number)
          store
            .statement(INSERT_GRADE)
            .run(key, found.task, found.attempt, Date.now(), reward, solved, grader.name, record)
          store.statement(SET_GRADE).run(...resultOfGrade(reward, solved), found.task)
        }
      })
    } catch (error) {
      throw storeError(error, this.#path, 'write')
    }
  }

  close(): void {
    this.#store.close(!isSharedStore(this.#path))
  }

  [Symbol.dispose](): void {
    this.close()
  }

  #lastGrade(): number {
    const last = this.#store.statement('SELECT max(grade) AS last FROM _grades WHERE grade >= ? AND grade < ?')
    const { last: key } = last.get(keyOf(this.#run, 0), keyOf(this.#run + 1, 0)) as { last: number | null }
    return (key ?? 0) % RUN_SPAN
  }
}

const FINAL = `SELECT t.task, a.attempt FROM _tasks t JOIN _attempts a ON a.task = t.task AND a.role = ${ROLE.final}
  WHERE t.id = ? AND t.parent = ?`
