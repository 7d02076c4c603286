import { hostname } from 'node:os'
import { PIECE_PAGES, pause, removePiece } from '../remove-run.ts'
import { StoreDb } from '../store-db.ts'
import { locked, storeError } from '../store-errors.ts'
import { findTraining, refuseOwned } from './claim-training.ts'
import type { FoundTraining } from './find-training.ts'
import { TrainingFiles } from './training-files.ts'
import { trainingFolder } from './training-ids.ts'

/**
 * Removes a training that is not in progress: its runs, its files, then its rows. If the process is killed meanwhile, the
 * training can only be removed again, because the remainder cannot be resumed.
 */
export function removeTraining({ path, id, training }: FoundTraining): void {
  try {
    const store = StoreDb.open(path, true)
    try {
      claim(store, id)
      for (let run = nextRun(store, training); run !== undefined; run = nextRun(store, training)) removeRun(store, run)
      new TrainingFiles(trainingFolder(path, id), id).removeAll()
      store.transact(false, () => {
        for (const table of ['_plans', '_updates', '_versions', '_evals', '_trainings'])
          store.statement(`DELETE FROM ${table} WHERE training = ?`).run(training)
      })
      while (store.returnFreePages(PIECE_PAGES)) pause()
    } finally {
      store.close(false)
    }
  } catch (error) {
    throw storeError(error, path, 'write')
  }
}

/** Marks the training as being removed, so that no other process can use it. */
function claim(store: StoreDb, id: string): void {
  store.transact(false, () => {
    const known = findTraining(store, id)
    if (!known) return
    refuseOwned(store, known)
    store
      .statement(
        `UPDATE _trainings SET ending = 'removing', ended_at = NULL, error = NULL, owner = ?, pid = ?, host = ?, started_at = ?5
         WHERE training = ?4`,
      )
      .run(store.owner, process.pid, hostname(), known.training, Date.now())
  })
}

const nextRun = (store: StoreDb, training: number): number | undefined =>
  (store.statement('SELECT run FROM _run WHERE training = ? LIMIT 1').get(training) as { run: number } | undefined)?.run

function removeRun(store: StoreDb, run: number): void {
  for (;;) {
    const left = removePiece(store, run)
    if (left === 'gone') return
    // Another driver has resumed this run.
    if (left === 'busy') throw locked(store.path, undefined)
    pause()
  }
}
