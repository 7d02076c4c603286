import { hash } from 'node:crypto'
import { keyOf, STEP_SPAN } from '../keys.ts'
import type { StoreDb } from '../store-db.ts'
import { type Columns, checkedRow, isText, isWhole } from '../stored-shapes.ts'

/** The most steps that one transaction removes, so that other drivers and the caller's event loop get their turn. */
const PIECE_STEPS = 2000

interface TaskColumns {
  readonly task: number
  readonly parent: number
  readonly id: string
}

const TASK: Columns<TaskColumns> = { task: isWhole, parent: isWhole, id: isText }

/** Whether a trajectory keeps its steps: one in `oneIn` does, chosen by the hash of its id, so that the choice is repeatable. */
const isKept = (id: string, oneIn: number): boolean =>
  Number.parseInt(hash('sha256', id).slice(0, 12), 16) % oneIn === 0

/** Returns the tasks of a run, with their sub-tasks, whose steps are to be removed. */
export function tasksToThin(store: StoreDb, run: number, oneIn: number): number[] {
  const root = keyOf(run, 0)
  const rows = store
    .statement('SELECT task, parent, id FROM _tasks WHERE task >= ? AND task < ? ORDER BY task')
    .all(root, keyOf(run + 1, 0))
    .map((row) => checkedRow(row, TASK, 'a task'))
  // A parent has a lower number than its sub-tasks.
  const thinned = new Set<number>()
  for (const { task, parent, id } of rows)
    if (parent === root ? !isKept(id, oneIn) : thinned.has(parent)) thinned.add(task)
  return [...thinned]
}

/** Removes the steps of tasks, in order, until the transaction is large enough. Returns how many tasks are done. */
export function thinPiece(store: StoreDb, tasks: readonly number[]): number {
  let steps = 0
  for (const [done, task] of tasks.entries()) {
    if (steps >= PIECE_STEPS) return done
    const starts = store
      .statement('SELECT DISTINCT start FROM _attempts WHERE task = ? AND start IS NOT NULL')
      .all(task)
    for (const row of starts) {
      const { start } = checkedRow<{ start: number }>(row, { start: isWhole }, 'an attempt')
      const { changes } = store
        .statement('DELETE FROM _steps WHERE key >= ? AND key < ?')
        .run(start * STEP_SPAN, (start + 1) * STEP_SPAN)
      if (Number(changes) === 0) continue
      store
        .statement('UPDATE _attempts SET removed_steps = ? WHERE task = ? AND start = ?')
        .run(Number(changes), task, start)
      steps += Number(changes)
    }
  }
  return tasks.length
}
