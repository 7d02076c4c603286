import { existsSync, readdirSync, statSync } from 'node:fs'
import { basename, dirname, join, resolve } from 'node:path'
import { ManyworldsError } from '../errors.ts'
import { REMOVED, RUN_SPAN } from './keys.ts'
import { openForReading } from './open-for-reading.ts'
import { defaultStore, isRunFile, isSharedStore, runIdOfPath, sharedStore } from './run-path.ts'
import { storeError } from './store-errors.ts'
import { checkedRow, isText, isTime, isWhole } from './stored-shapes.ts'

/** The location of a run. */
export interface FoundRun {
  readonly path: string
  readonly runId: string
  /** The number of the run in its store. Undefined: the only run of its file. */
  readonly run: number | undefined
  /** The id of the training that the run belongs to. */
  readonly training?: string
}

/** A run with the time at which it was last written. */
interface DatedRun extends FoundRun {
  readonly time: number
}

/** The folder to look in: `store`, MANYWORLDS_STORE, or `.manyworlds/runs` in the current folder. */
export function runFolder(store?: string): string {
  return resolve(store ?? (defaultStore() || '.manyworlds/runs'))
}

/** Lists the runs of a folder, those in its store and those in files of their own, the newest last. */
export function listRuns(folder: string): DatedRun[] {
  let names: string[]
  try {
    names = readdirSync(folder)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return []
    if ((error as NodeJS.ErrnoException).code === 'ENOTDIR') throw notFound(`${folder} is not a folder`)
    throw storeError(error, folder, 'read')
  }
  return names
    .filter(isRunFile)
    .map((name) => join(folder, name))
    .filter((path) => statSync(path, { throwIfNoEntry: false })?.isFile())
    .flatMap((path): DatedRun[] =>
      path === sharedStore(folder)
        ? runsIn(path)
        : [{ path, runId: runIdOfPath(path), run: undefined, time: changedAt(path) }],
    )
    .sort((a, b) => a.time - b.time || (a.run ?? 0) - (b.run ?? 0) || (a.runId < b.runId ? -1 : 1))
}

/** Selects runs that were not started by a training. A training has hundreds of runs; they are found by its id. */
export const ownRuns = <Run extends FoundRun>(runs: readonly Run[]): Run[] =>
  runs.filter(({ training }) => training === undefined)

/** Finds a run by its id, a prefix of its id, `last`, the path of its file, or FOLDER/ID. */
export function findRun(name: string, folder: string): FoundRun {
  if (name === '') throw notFound('the run name is empty; give a run id, `last`, or the path of a run file')
  if (isRunFile(name) && statSync(name, { throwIfNoEntry: false })?.isFile()) return inFile(resolve(name))
  if (name.includes('/')) {
    const place = resolve(dirname(name))
    if (!existsSync(sharedStore(place)))
      throw notFound(`${name} is not a run file (….sqlite, ….db), and there is no store ${sharedStore(place)}`)
    return findRun(basename(name), place)
  }
  const runs = listRuns(folder)
  const own = ownRuns(runs)
  if (runs.length === 0) throw notFound(`no runs in ${folder}`)
  if (name === 'last') return (own.length > 0 ? own : runs).at(-1)!
  const exact = runs.find(({ runId }) => runId === name)
  if (exact) return exact
  const begin = (some: readonly FoundRun[]) => some.filter(({ runId }) => runId.startsWith(name))
  const alike = begin(own).length > 0 ? begin(own) : begin(runs)
  if (alike.length === 1) return alike[0]!
  if (alike.length > 1) throw notFound(`several runs start with '${name}': ${names(alike)}; give more of the id`)
  throw notFound(`no run '${name}' in ${folder}; the latest are ${names(runs)}. Run \`manyworlds runs\` to list all`)
}

function inFile(path: string): FoundRun {
  if (!isSharedStore(path)) return { path, runId: runIdOfPath(path), run: undefined }
  const runs = runsIn(path)
  if (runs.length === 1) return runs[0]!
  throw notFound(
    `${path} holds ${runs.length} runs; name one run and give the folder with --dir. Latest runs: ${names(runs) || 'none'}`,
  )
}

/** Lists the runs of a store with the time at which each was last written. */
export function runsIn(path: string): DatedRun[] {
  using db = openForReading(path)
  try {
    const rows = db
      .prepare(
        `SELECT r.run, r.run_id AS runId, coalesce(s.ended_at, s.seen_at, r.created_at) AS time,
         (SELECT id FROM _trainings t WHERE t.training = r.training) AS training FROM _run r LEFT JOIN _sessions s ON s.epoch = r.run * ${RUN_SPAN} + r.epoch
         WHERE coalesce(r.run_id, '') NOT LIKE ? ORDER BY time`,
      )
      .all(`${REMOVED}%`)
    return rows.map((row) => {
      const { run } = checkedRow<{ run: number }>(row, { run: isWhole }, 'a run')
      // A damaged id or time is reported when that run is opened. It must not hide the other runs.
      const runId = isText(row.runId) ? String(row.runId) : `(run number ${run}, no valid id)`
      const training = isText(row.training) ? { training: String(row.training) } : {}
      return { path, run, runId, time: isTime(row.time) ? Number(row.time) : 0, ...training }
    })
  } catch (error) {
    throw storeError(error, path, 'read')
  }
}

/** Finds a run by its exact id. */
export function runIn(path: string, runId: string): FoundRun | undefined {
  using db = openForReading(path)
  const row = db.prepare('SELECT run FROM _run WHERE run_id = ?').get(runId)
  return row && { path, runId, run: checkedRow<{ run: number }>(row, { run: isWhole }, 'a run').run }
}

/** When a run was last changed. A run may have written only to its log. An empty log was created by a reader. */
function changedAt(path: string): number {
  const file = statSync(path, { throwIfNoEntry: false })?.mtimeMs ?? 0
  const log = statSync(`${path}-wal`, { throwIfNoEntry: false })
  return log && log.size > 0 ? Math.max(file, log.mtimeMs) : file
}

const names = (runs: readonly FoundRun[]) =>
  runs
    .slice(-5)
    .map(({ runId }) => runId)
    .reverse()
    .join(', ')
const notFound = (what: string) => new ManyworldsError('RUN_NOT_FOUND', what)
