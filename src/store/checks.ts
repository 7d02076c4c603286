import { ManyworldsError } from '../errors.ts'
import type { RunHeader } from './messages.ts'
import { APPLICATION_ID, SCHEMA_VERSION } from './schema.ts'
import type { DatabaseSync } from './sqlite.ts'
import { corrupt } from './store-errors.ts'

/** A run file, of a version we know, and sound: before anything is done with it. */
export function openingCheck(db: DatabaseSync, path: string): void {
  refuseOtherSchema(db, path)
  const [first] = db.prepare('PRAGMA quick_check(1)').all() as { quick_check: string }[]
  if (first?.quick_check !== 'ok') throw corrupt(path, first?.quick_check ?? 'it cannot be checked')
}

export function refuseOtherSchema(db: DatabaseSync, path: string): void {
  const pragma = (name: string) => Object.values(db.prepare(`PRAGMA ${name}`).get()!)[0] as number
  if (pragma('application_id') !== APPLICATION_ID) throw corrupt(path, 'it is some other SQLite file')
  const version = pragma('user_version')
  if (version > SCHEMA_VERSION)
    throw new ManyworldsError(
      'STORE_NEWER',
      `${path} was written by a newer manyworlds (schema ${version}; this one reads up to ${SCHEMA_VERSION}). Update manyworlds, or start a run under another runId`,
    )
}

/** What may not change from one session to the next. */
export function refuseOtherHeader(db: DatabaseSync, wanted: RunHeader, path: string): void {
  const was = db.prepare('SELECT run_id, seed, sequence_dependent FROM _run').get() as
    | { run_id: string; seed: number; sequence_dependent: number }
    | undefined
  if (!was) throw corrupt(path, 'it has no run in it')
  const differ = (what: string, before: unknown, now: unknown) => {
    if (before !== now)
      throw new ManyworldsError(
        'RESUME_MISMATCH',
        `run '${was.run_id}' (${path}) has ${what} ${String(before)}, and this call has ${String(now)}; a run is resumed as it was begun. Change it back, or start a run under another runId`,
      )
  }
  differ('the runId', was.run_id, wanted.runId)
  differ('seed', was.seed, wanted.seed)
  differ('sequenceDependent', was.sequence_dependent === 1, wanted.sequenceDependent)
}
