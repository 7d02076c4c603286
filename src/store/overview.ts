import { existsSync, statSync } from 'node:fs'
import { type RunColumns, readRun } from './checks.ts'
import type { FoundRun } from './find-run.ts'
import { keyOf } from './keys.ts'
import { openForReading } from './open-for-reading.ts'
import { isSharedStore } from './run-path.ts'
import { type DatabaseSync, prepared } from './sqlite.ts'
import { ownerIsAlive } from './store-db.ts'
import { storeError } from './store-errors.ts'
import {
  type Columns,
  checkedRow,
  isAnything,
  isFields,
  isNumber,
  isText,
  isTime,
  isWhole,
  oneOf,
  orNull,
} from './stored-shapes.ts'
import type { RunOverview } from './stored-task.ts'

interface SessionColumns {
  readonly endedAt: number | null
  readonly ending: 'finished' | 'interrupted' | 'failed' | null
  readonly error: string | null
  readonly owner: string | null
  readonly engine: unknown
  readonly sample: string | null
}

const SESSION: Columns<SessionColumns> = {
  endedAt: orNull(isTime),
  ending: oneOf('finished', 'interrupted', 'failed', null),
  error: orNull(isText),
  owner: orNull(isText),
  engine: isAnything,
  sample: orNull(isText),
}

const LAST_SESSION = `SELECT ended_at AS endedAt, ending, error, owner, config ->> '$.engineName' AS engine,
  config -> '$.sample' AS sample FROM _sessions WHERE epoch = ?`
const ELAPSED =
  'SELECT sum(coalesce(ended_at, seen_at) - started_at) AS ms FROM _sessions WHERE epoch >= ? AND epoch < ?'

/** Reads the overview of a run. Without a run number, reads the only run of its file. */
export function readOverview(db: DatabaseSync, path: string, run: number | undefined): RunOverview {
  try {
    const seen = overviewOf(db, path, readRun(db, run))
    // The run may have ended, or a new session begun, between the two queries. Read again.
    return seen.status === 'died' ? overviewOf(db, path, readRun(db, run)) : seen
  } catch (error) {
    throw storeError(error, path, 'read')
  }
}

function overviewOf(db: DatabaseSync, path: string, run: RunColumns): RunOverview {
  const { success, failed, timeout, crashed, cancelled } = run
  const row = prepared(db, LAST_SESSION).get(keyOf(run.run, run.epoch))
  const session = row && checkedRow(row, SESSION, 'a session')
  const going = session?.endedAt === null && ownerIsAlive(path, session.owner)
  const times = prepared(db, ELAPSED).get(keyOf(run.run, 0), keyOf(run.run + 1, 0))
  const { ms } = checkedRow<{ ms: number | null }>(times, { ms: orNull(isNumber) }, 'the sessions')
  return {
    runId: run.run_id,
    file: path,
    status: going ? 'running' : (session?.ending ?? 'died'),
    startedAt: run.created_at,
    elapsedMs: ms ?? 0,
    ...(going || typeof session?.endedAt !== 'number' ? {} : { endedAt: session.endedAt }),
    ...(run.total === null ? {} : { total: run.total }),
    ...sampleOf(session?.sample),
    counts: { success, failed, timeout, crashed, cancelled },
    ...(run.script === null ? {} : { script: run.script }),
    ...(typeof session?.engine === 'string' ? { engineName: session.engine } : {}),
    sessions: run.epoch,
    ...(typeof session?.error === 'string' && !going ? { error: session.error } : {}),
    ...(isSharedStore(path) ? {} : { bytes: fileBytes(path) }),
  }
}

/** The sample that a session ran, from its configuration. */
function sampleOf(json: string | null | undefined): Pick<RunOverview, 'sample'> {
  if (typeof json !== 'string') return {}
  const sample: unknown = JSON.parse(json)
  if (!isFields(sample) || !isWhole(sample.limit) || !isWhole(sample.of) || !isNumber(sample.seed)) return {}
  return { sample: sample as unknown as NonNullable<RunOverview['sample']> }
}

/** A run with its overview, or with the error from reading it. */
export type RunSummary = { readonly found: FoundRun } & (
  | { readonly overview: RunOverview; readonly problem?: undefined }
  | { readonly overview?: undefined; readonly problem: Error }
)

/** Reads the overviews of many runs. Consecutive runs of one store share a connection. */
export function* overviewsOf(runs: Iterable<FoundRun>): Generator<RunSummary> {
  let path: string | undefined
  let db: DatabaseSync | undefined
  try {
    for (const found of runs) {
      try {
        if (found.path !== path) {
          db?.close()
          db = undefined
          path = found.path
        }
        db ??= openForReading(found.path)
        yield { found, overview: readOverview(db, found.path, found.run) }
      } catch (problem) {
        yield { found, problem: problem as Error }
      }
    }
  } finally {
    db?.close()
  }
}

const fileBytes = (path: string) =>
  [path, `${path}-wal`].reduce((sum, file) => sum + (existsSync(file) ? statSync(file).size : 0), 0)
