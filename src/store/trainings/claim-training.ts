import { hostname } from 'node:os'
import { ManyworldsError } from '../../errors.ts'
import { runArgument } from '../../text/own-command.ts'
import type { StoreDb } from '../store-db.ts'
import { RUNS_NAMED_LIKE } from './training-ids.ts'
import { type NewTraining, TRAINING_COLUMNS, type TrainingColumns, trainingOf } from './training-rows.ts'

/** `start` refuses an existing id, `resume` a missing one. */
export type TrainingMode = 'start' | 'resume' | 'auto'

export function findTraining(store: Pick<StoreDb, 'statement'>, id: string): TrainingColumns | undefined {
  const row = store.statement(`SELECT ${TRAINING_COLUMNS} FROM _trainings WHERE id = ?`).get(id)
  return row && trainingOf(row)
}

/** Throws if this process cannot open the training. Returns it if it exists. */
export function refuseTraining(store: StoreDb, id: string, mode: TrainingMode): TrainingColumns | undefined {
  const known = findTraining(store, id)
  if (known === undefined) {
    if (mode === 'resume') throw trainingNotFound(store.path, id)
    refuseRuns(store, id)
    return undefined
  }
  if (mode === 'start') throw alreadyThere(store.path, id)
  if (known.ending === 'removing')
    throw new ManyworldsError(
      'RUN_EXISTS',
      `training '${id}' (${store.path}) is partly removed; finish removing it with \`manyworlds rm ${runArgument(id, store.path)}\``,
    )
  refuseOwned(store, known)
  return known
}

/** Throws RUN_LOCKED if another living process owns the training. */
export function refuseOwned(store: StoreDb, { id, owner, endedAt, pid, host, startedAt }: TrainingColumns): void {
  if (endedAt !== null || owner === store.owner || !store.isAlive(owner)) return
  throw new ManyworldsError(
    'RUN_LOCKED',
    `training '${id}' (${store.path}) is in use by process ${pid} on ${host}, since ${new Date(startedAt).toISOString()}. Only one process may write a training: wait for it to end, or stop it`,
  )
}

/** Begins a session. From here on, an earlier owner can no longer write. Call this inside a transaction. */
export function claimTraining(store: StoreDb, id: string, mode: TrainingMode, begin: NewTraining): void {
  const { training } = refuseTraining(store, id, mode) ?? { training: create(store, id, begin) }
  store
    .statement(
      `UPDATE _trainings SET owner = ?, pid = ?, host = ?, started_at = ?5, seen_at = ?5, ended_at = NULL, ending = NULL,
       error = NULL, sessions = sessions + 1 WHERE training = ?4`,
    )
    .run(store.owner, process.pid, hostname(), training, Date.now())
}

function create(store: StoreDb, id: string, { manyworlds, script, agent, policy, seed, config }: NewTraining): number {
  const { lastInsertRowid } = store
    .statement(
      `INSERT INTO _trainings (id, created_at, manyworlds, script, agent, policy, seed, config, pid, host, started_at, seen_at, sessions)
       VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, 0, '', ?2, ?2, 0)`,
    )
    .run(id, Date.now(), manyworlds, script ?? null, agent, policy, seed, JSON.stringify(config) ?? 'null')
  return Number(lastInsertRowid)
}

/** Throws if a run already has this id or looks like a run of this training, because it would be mistaken for one. */
function refuseRuns(store: StoreDb, id: string): void {
  const taken = store.statement(`SELECT run_id AS runId FROM _run WHERE run_id = ?1 OR ${RUNS_NAMED_LIKE} LIMIT 1`)
  const row = taken.get(id) as { runId: string } | undefined
  if (row)
    throw new ManyworldsError(
      'RUN_EXISTS',
      `training '${id}' conflicts with run '${row.runId}' in ${store.path}; give another id, or remove that run`,
    )
}

export const trainingNotFound = (path: string, id: string): ManyworldsError =>
  new ManyworldsError(
    'RUN_NOT_FOUND',
    `no training '${id}' to resume in ${path}. Run \`manyworlds trainings\` to list the stored trainings, or use \`resume: 'auto'\` with an id to start the training if it does not exist`,
  )

const alreadyThere = (path: string, id: string) =>
  new ManyworldsError(
    'RUN_EXISTS',
    `training '${id}' already exists (${path}). Resume it with \`resume: '${id}'\`; use \`resume: 'auto'\` to start or resume; give another id; or remove it with \`manyworlds rm ${runArgument(id, path)}\``,
  )
