import { basename, dirname, join } from 'node:path'
import { ManyworldsError } from '../../errors.ts'
import type { StoreDb } from '../store-db.ts'
import type { EvaluatedSplit } from './training-rows.ts'

/** As ids of runs. It names a folder, and its runs have longer ids, of at most 128 characters. */
const ID = /^[A-Za-z0-9][\w.-]{0,99}$/
/** What the id of a run of a training has after the id of the training: `.u00007`, `.u00007.reflect`, `.v00012.test`. */
const RUN = /^(.+)\.(?:u\d{5,}(?:\.reflect)?|v\d{5,}\.(?:validation|test))$/
/** The same for SQLite: `?1` is the id of the training, which has no characters that GLOB would interpret. */
export const RUNS_NAMED_LIKE = `(run_id GLOB ?1 || '.u[0-9][0-9][0-9][0-9][0-9]*' OR run_id GLOB ?1 || '.v[0-9][0-9][0-9][0-9][0-9]*')`

const isTrainingId = (id: string): boolean => ID.test(id) && id !== 'auto' && id !== 'last'

export function checkTrainingId(id: string): void {
  if (!isTrainingId(id))
    throw new ManyworldsError(
      'CONFIG_INVALID',
      `a training cannot be called '${id.slice(0, 120)}': its id must begin with a letter or digit, and have only letters, digits, ".", "_" and "-", 100 at most; 'auto' and 'last' have another meaning`,
    )
}

/** What a run of a training is for, by its id: `train` if it collects episodes to learn from, `reflect` if a learner asks a model. */
export function splitOfRun(runId: string): 'train' | 'reflect' | EvaluatedSplit {
  const [, split] = /\.(validation|test|off-task|reflect)$/.exec(runId) ?? []
  return (split as EvaluatedSplit | 'reflect' | undefined) ?? 'train'
}

/** The folder of a training's weights and states. Throws if the id, which may come from a hostile file, would lead elsewhere. */
export function trainingFolder(store: string, id: string): string {
  if (!ID.test(id)) throw new Error(`the id of a training is '${id.slice(0, 40)}'`)
  return join(dirname(store), `${basename(store, '.sqlite')}.trainings`, id)
}

/**
 * The number of the training that a new run belongs to, by its id; null if it belongs to none. Throws if a training has this
 * very id: a command that names it could mean either.
 */
export function trainingOfNewRun(store: Pick<StoreDb, 'statement'>, runId: string): number | null {
  const find = (id: string) =>
    store.statement('SELECT training FROM _trainings WHERE id = ?').get(id) as { training: number } | undefined
  if (find(runId) !== undefined)
    throw new ManyworldsError('RUN_EXISTS', `'${runId}' is the id of a training in this store; give another runId`)
  const [, id] = RUN.exec(runId) ?? []
  return (id !== undefined && find(id)?.training) || null
}
