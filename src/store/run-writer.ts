import { existsSync, mkdirSync, statSync } from 'node:fs'
import { dirname } from 'node:path'
import { ManyworldsError } from '../errors.ts'
import { runArgument } from '../text/own-command.ts'
import { openingCheck, readRun, refuseOtherHeader, refuseOtherSchema } from './checks.ts'
import { RunLock } from './lock.ts'
import type { Ending, Opened, OpenRequest, Row, Session } from './messages.ts'
import { RowWriter } from './row-writer.ts'
import { CREATE } from './schema.ts'
import { type DatabaseSync, openFile } from './sqlite.ts'
import { corrupt } from './store-errors.ts'
import { checkedRow, isWhole } from './stored-shapes.ts'

/** How long somebody else (a reader that makes a checkpoint) may hold the file. */
const BUSY_MS = 5000
/** Pages of the log before they are moved into the file: a page that changes often is moved once. */
const LOG_PAGES = 4000

/** One run file that this process owns. */
export class RunWriter {
  readonly path: string
  readonly #db: DatabaseSync
  readonly #lock: RunLock
  readonly #synchronous: 'NORMAL' | 'FULL'
  readonly #inode: number
  #rows: RowWriter | undefined
  #epoch = 0
  #takenOver = false

  private constructor(path: string, db: DatabaseSync, lock: RunLock, durability: OpenRequest['durability']) {
    this.#synchronous = durability === 'full' ? 'FULL' : 'NORMAL'
    this.path = path
    this.#db = db
    this.#lock = lock
    this.#inode = statSync(path).ino
  }

  /** Takes the file, and checks it. Nothing is written to a run that exists before `begin`. */
  static open({ path, header, mode, durability }: OpenRequest): { writer: RunWriter; opened: Opened } {
    if (mode === 'resume' && !existsSync(path)) throw notFound(path, header.runId)
    mkdirSync(dirname(path), { recursive: true })
    const lock = RunLock.take(path)
    if (!lock) throw locked(path, header.runId)
    let db: DatabaseSync | undefined
    try {
      db = openFile(path, { timeout: BUSY_MS })
      // A driver that died while it made the file leaves an empty one.
      const exists = db.prepare('SELECT 1 FROM sqlite_schema').get() !== undefined
      if (exists && mode === 'start') throw alreadyThere(path, runIdIn(db) ?? header.runId)
      if (!exists && mode === 'resume') throw corrupt(path, 'it is empty')
      if (exists) {
        openingCheck(db, path)
        refuseOtherHeader(db, header, path)
      }
      // Until the run file has its content there is nothing that a power cut could take.
      if (!exists) db.exec('PRAGMA synchronous = OFF; PRAGMA journal_mode = WAL')
      if (!exists) create(db, header)
      const writer = new RunWriter(path, db, lock, durability)
      return { writer, opened: { resumed: exists, next: nextNumbers(db) } }
    } catch (error) {
      db?.close()
      lock.release()
      throw error
    }
  }

  /** A new session: from here on, whoever had the run before can write nothing more. */
  begin({ pid, host, node, config, total }: Session): void {
    this.#db.exec('PRAGMA journal_mode = WAL')
    this.#db.exec(`PRAGMA wal_autocheckpoint = ${LOG_PAGES}; PRAGMA synchronous = ${this.#synchronous}`)
    this.#inTransaction(() => {
      const { epoch } = this.#db.prepare('UPDATE _run SET epoch = epoch + 1 RETURNING epoch').get() as { epoch: number }
      this.#epoch = epoch
      if (total !== null) this.#db.prepare('UPDATE _run SET total = ?').run(total)
      this.#db
        .prepare(
          'INSERT INTO _sessions (epoch, started_at, seen_at, pid, host, node, config) VALUES (?, ?, ?, ?, ?, ?, ?)',
        )
        .run(epoch, Date.now(), Date.now(), pid, host, node, config)
    })
    this.#rows = new RowWriter(this.#db, this.#epoch)
  }

  /** All of it, or nothing. */
  write(rows: readonly Row[]): void {
    this.#inTransaction(() => {
      this.#own()
      for (const row of rows) this.#rows!.write(row)
      this.#rows!.count()
    })
  }

  /**
   * Writes how the session ended, if one was begun. What is left is one plain file, that can be read also from a folder
   * in which nothing can be written.
   */
  end(ending: Ending | undefined): void {
    try {
      if (ending && !this.#takenOver)
        this.#db
          .prepare('UPDATE _sessions SET ended_at = ?, ending = ?, error = ? WHERE epoch = ?')
          .run(Date.now(), ending.how, ending.error, this.#epoch)
    } finally {
      try {
        if (ending) this.#db.exec('PRAGMA busy_timeout = 50; PRAGMA journal_mode = DELETE')
      } catch {
        // Somebody is reading it: then it stays as it is, which is as good.
      }
      this.#db.close()
      if (this.#takenOver) this.#lock.leave()
      else this.#lock.release()
    }
  }

  #inTransaction(write: () => void): void {
    this.#db.exec('BEGIN IMMEDIATE')
    try {
      write()
      this.#db.exec('COMMIT')
    } catch (error) {
      // SQLite has rolled back by itself after some errors.
      if (this.#db.isTransaction) this.#db.exec('ROLLBACK')
      this.#rows?.rolledBack()
      throw error
    }
  }

  /** Makes sure that the run is still ours. */
  #own(): void {
    this.#takenOver = !this.#rows!.isLatest()
    if (this.#takenOver)
      throw new ManyworldsError(
        'RUN_LOCKED',
        `another driver has taken over the run file ${this.path}; this one writes nothing more`,
      )
    if (statSync(this.path, { throwIfNoEntry: false })?.ino !== this.#inode)
      throw new ManyworldsError(
        'STORE_FAILED',
        `the run file ${this.path} was removed or replaced while the run was going on: nothing of it is stored any more, and it cannot be resumed`,
      )
  }
}

function create(db: DatabaseSync, { runId, seed, sequenceDependent, manyworlds, script }: OpenRequest['header']): void {
  db.exec(`BEGIN IMMEDIATE; ${CREATE}`)
  db.prepare(
    `INSERT INTO _run (run_id, created_at, manyworlds, script, seed, sequence_dependent, epoch) VALUES (?, ?, ?, ?, ?, ?, 0)`,
  ).run(runId, Date.now(), manyworlds, script, seed, Number(sequenceDependent))
  db.exec('COMMIT')
}

/** Undefined: it is no run file. */
function runIdIn(db: DatabaseSync): string | undefined {
  try {
    refuseOtherSchema(db, '')
    return readRun(db).run_id
  } catch {
    return undefined
  }
}

function nextNumbers(db: DatabaseSync): Opened['next'] {
  const next = (table: string, key: string) => {
    const row = db.prepare(`SELECT coalesce(max(${key}), 0) + 1 AS next FROM ${table}`).get()
    return checkedRow<{ next: number }>(row, { next: isWhole }, table).next
  }
  // What the thread counts by itself.
  for (const [table, key] of [
    ['_attempts', 'seq'],
    ['_blobs', 'blob'],
  ] as const)
    next(table, key)
  return { agent: next('_agents', 'agent'), worker: next('_workers', 'worker'), task: next('_tasks', 'task') }
}

const notFound = (path: string, runId: string) =>
  new ManyworldsError(
    'RUN_NOT_FOUND',
    `there is no run '${runId}' to resume: ${path} does not exist. \`manyworlds runs\` lists those that are there; \`resume: 'auto'\` with a runId starts a run that does not exist yet`,
  )

const alreadyThere = (path: string, runId: string) =>
  new ManyworldsError(
    'RUN_EXISTS',
    `run '${runId}' exists already (${path}). Continue it with \`resume: '${runId}'\` (\`--resume ${runArgument(runId, path)}\`), or with \`resume: 'auto'\`, which does what fits; give another runId; or remove it with \`manyworlds rm ${runArgument(runId, path)}\``,
  )

function locked(path: string, runId: string): ManyworldsError {
  return new ManyworldsError(
    'RUN_LOCKED',
    `run '${runId}' (${path}) is being written by ${ownerOf(path)}. One driver at a time: wait for it, or stop it`,
  )
}

function ownerOf(path: string): string {
  try {
    using db = openFile(path, { readOnly: true, timeout: 0 })
    refuseOtherSchema(db, path)
    const { pid, host, since } = db
      .prepare(`SELECT pid, host, started_at AS since FROM _sessions ORDER BY epoch DESC LIMIT 1`)
      .get() as { pid: number; host: string; since: number }
    return `process ${pid} on ${host}, since ${new Date(since).toISOString()}`
  } catch {
    // It is just being made.
    return 'another driver'
  }
}
