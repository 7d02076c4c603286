import { basename, dirname, join } from 'node:path'
import { ManyworldsError } from '../../errors.ts'
import type { StoreDb } from '../store-db.ts'
import type { EvaluatedSplit } from './training-rows.ts'

/** The same characters as ids of runs. The id names a folder, and the ids of its runs are longer, with at most 128 characters. */
const ID = /^[A-Za-z0-9][\w.-]{0,99}$/
/** A run id of a training: the id of the training and `.u00007`, `.u00007.reflect` or `.v00012.test`. */
const RUN = /^(.+)\.(?:u\d{5,}(?:\.reflect)?|v\d{5,}\.(?:validation|test))$/
/** The same pattern for SQLite. `?1`: the id of the training, which has no characters that GLOB would interpret. */
export const RUNS_NAMED_LIKE = `(run_id GLOB ?1 || '.u[0-9][0-9][0-9][0-9][0-9]*' OR run_id GLOB ?1 || '.v[0-9][0-9][0-9][0-9][0-9]*')`

const isTrainingId = (id: string): boolean => ID.test(id) && id !== 'auto' && id !== 'last'

export function checkTrainingId(id: string): void {
  if (!isTrainingId(id))
    throw new ManyworldsError(
      'CONFIG_INVALID',
      `invalid training id '${id.slice(0, 120)}': it must start with a letter or digit and have at most 100 letters, digits, ".", "_" and "-"; 'auto' and 'last' are reserved`,
    )
}

/** The purpose of a run of a training, by its id: `train` collects episodes to learn from, `reflect` lets a learner call a model. */
export function splitOfRun(runId: string): 'train' | 'reflect' | EvaluatedSplit {
  const [, split] = /\.(validation|test|off-task|reflect)$/.exec(runId) ?? []
  return (split as EvaluatedSplit | 'reflect' | undefined) ?? 'train'
}

/** The folder of a training's weights and states. Throws if the id, which may come from a hostile file, would escape the folder. */
export function trainingFolder(store: string, id: string): string {
  if (!ID.test(id)) throw new Error(`invalid training id '${id.slice(0, 40)}'`)
  return join(dirname(store), `${basename(store, '.sqlite')}.trainings`, id)
}

/**
 * The number of the training that a new run belongs to, by its id; null if it belongs to none. Throws if the run id is the
 * id of a training, because a command that names it would be ambiguous.
 */
export function trainingOfNewRun(store: Pick<StoreDb, 'statement'>, runId: string): number | null {
  const find = (id: string) =>
    store.statement('SELECT training FROM _trainings WHERE id = ?').get(id) as { training: number } | undefined
  if (find(runId) !== undefined)
    throw new ManyworldsError('RUN_EXISTS', `'${runId}' is the id of a training in this store; give another runId`)
  const [, id] = RUN.exec(runId) ?? []
  return (id !== undefined && find(id)?.training) || null
}
