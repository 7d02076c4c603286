import { randomBytes } from 'node:crypto'
import { existsSync, mkdirSync, readdirSync, statSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import type { StatementSync } from 'node:sqlite'
import { ManyworldsError } from '../errors.ts'
import { pragma, refuseOtherSchema, schemaVersion } from './checks.ts'
import { isLocked, RunLock } from './lock.ts'
import { migrate } from './migrations.ts'
import { showAsItIs, showAsToday } from './open-for-reading.ts'
import { SCHEMA_VERSION } from './schema.ts'
import { type DatabaseSync, openFile } from './sqlite.ts'
import { locked } from './store-errors.ts'

/** How long somebody else (another driver, a reader that makes a checkpoint) may hold the store. */
const BUSY_MS = 10_000
/** Pages of the log before they are moved into the file: a page that changes often is moved once. */
const LOG_PAGES = 4000

/**
 * An open store, with the lock that says that its owner lives. Drivers share a store: SQLite lets one write at a time, and
 * each run has one owner, whose name is in its session.
 */
export class StoreDb {
  readonly path: string
  readonly db: DatabaseSync
  /** The name under which runs of this process are owned. */
  readonly owner: string
  readonly #lock: RunLock
  readonly #inode: number
  readonly #statements = new Map<string, StatementSync>()
  #synchronous = ''
  #isReady = false
  #lastStart: number | undefined

  private constructor(path: string, db: DatabaseSync) {
    this.path = path
    this.db = db
    this.owner = randomBytes(6).toString('hex')
    removeDeadOwners(path)
    this.#lock = RunLock.take(ownerPath(path, this.owner))!
    this.#inode = statSync(path).ino
  }

  /** Opens the store, and makes it if it is not there. One that is there is not changed before the first transaction. */
  static open(path: string, shared: boolean): StoreDb {
    mkdirSync(dirname(path), { recursive: true })
    const db = openFile(path, { timeout: BUSY_MS })
    try {
      if (!isEmpty(db)) refuseOtherSchema(db, path)
      else create(db, shared)
      showAsToday(db)
      return new StoreDb(path, db)
    } catch (error) {
      db.close()
      throw error
    }
  }

  /** All of it, or nothing. `full`: it waits for the disk. */
  transact<T>(full: boolean, write: () => T): T {
    this.#makeSure()
    this.#makeReady()
    this.#setSynchronous(full ? 'FULL' : 'NORMAL')
    this.#lastStart = undefined
    this.db.exec('BEGIN IMMEDIATE')
    try {
      const result = write()
      this.db.exec('COMMIT')
      return result
    } catch (error) {
      // SQLite has rolled back by itself after some errors.
      if (this.db.isTransaction) this.db.exec('ROLLBACK')
      throw error
    }
  }

  /** Moves what is in the log into the file, as far as readers let it. */
  emptyLog(): void {
    this.db.exec('PRAGMA wal_checkpoint(PASSIVE)')
  }

  /** Gives pages that are no longer used back to the disk. True: there are more. */
  giveBack(pages: number): boolean {
    const unused = () => pragma(this.db, 'freelist_count')
    const before = unused()
    if (before > 0) this.db.exec(`PRAGMA incremental_vacuum(${pages})`)
    const after = unused()
    // A store that somebody has copied with other settings gives nothing back.
    return after > 0 && after < before
  }

  /** Prepared once, for all runs. */
  statement(sql: string): StatementSync {
    let statement = this.#statements.get(sql)
    if (statement === undefined) this.#statements.set(sql, (statement = this.db.prepare(sql)))
    return statement
  }

  /** A number for a start, inside a transaction: nobody else writes meanwhile. */
  nextStart(): number {
    this.#lastStart ??= (
      this.statement('SELECT coalesce(max(start), 0) AS last FROM _starts').get() as { last: number }
    ).last
    return ++this.#lastStart
  }

  isAlive(owner: string | null): boolean {
    return owner === this.owner || ownerIsAlive(this.path, owner)
  }

  /** `plain`: what is left is one file, that can be read also from a folder in which nothing can be written. */
  close(plain: boolean): void {
    try {
      if (plain) this.db.exec('PRAGMA busy_timeout = 50; PRAGMA journal_mode = DELETE')
    } catch {
      // Somebody is reading it: then it stays as it is, which is as good.
    }
    this.db.close()
    this.#lock.release()
  }

  /** False: the file was removed, or another is in its place. */
  get isThere(): boolean {
    return statSync(this.path, { throwIfNoEntry: false })?.ino === this.#inode
  }

  #makeSure(): void {
    if (!this.isThere)
      throw new ManyworldsError(
        'STORE_FAILED',
        `${this.path} was removed or replaced since this run was begun: nothing more of the run is stored, and it cannot be resumed`,
      )
  }

  #makeReady(): void {
    if (this.#isReady) return
    this.db.exec(`PRAGMA journal_mode = WAL; PRAGMA wal_autocheckpoint = ${LOG_PAGES}`)
    if (schemaVersion(this.db) < SCHEMA_VERSION) this.#migrate()
    this.#isReady = true
  }

  #migrate(): void {
    // A driver of an older version holds its lock beside the file while it writes.
    const lock = RunLock.take(this.path)
    if (!lock) throw locked(this.path, undefined)
    try {
      showAsItIs(this.db)
      this.db.exec('BEGIN IMMEDIATE')
      migrate(this.db, schemaVersion(this.db))
      this.db.exec('COMMIT')
    } finally {
      if (this.db.isTransaction) this.db.exec('ROLLBACK')
      lock.release()
    }
  }

  #setSynchronous(synchronous: 'NORMAL' | 'FULL'): void {
    if (this.#synchronous === synchronous) return
    this.db.exec(`PRAGMA synchronous = ${synchronous}`)
    this.#synchronous = synchronous
  }
}

/** A driver that died while it made the file leaves an empty one. */
const isEmpty = (db: DatabaseSync) => db.prepare('SELECT 1 FROM sqlite_schema').get() === undefined

function create(db: DatabaseSync, shared: boolean): void {
  if (shared) db.exec('PRAGMA auto_vacuum = INCREMENTAL')
  // Until the file has its content there is nothing that a power cut could take.
  db.exec('PRAGMA synchronous = OFF; PRAGMA journal_mode = WAL; BEGIN IMMEDIATE')
  // Another driver may have made it meanwhile.
  if (isEmpty(db)) migrate(db, 0)
  db.exec('COMMIT')
}

const OWNER = /^[0-9a-f]{12}$/

const ownerPath = (path: string, owner: string) => `${path}-owner-${owner}`

/** Whether the driver that owns a run of this store lives. */
export function ownerIsAlive(path: string, owner: string | null): boolean {
  // Before owners had names, the lock was that of the file.
  if (owner === null) return isLocked(path)
  // It becomes a part of a path, and may come from anybody.
  return OWNER.test(owner) && isLocked(ownerPath(path, owner))
}

/** What drivers that were killed have left. */
function removeDeadOwners(path: string): void {
  const beginning = `${basename(path)}-owner-`
  for (const name of readdirSync(dirname(path))) {
    if (!name.startsWith(beginning) || !name.endsWith('-lock')) continue
    const owner = join(dirname(path), name.slice(0, -'-lock'.length))
    // Taking a lock waits for whoever has it: a living owner is not waited for.
    if (existsSync(`${owner}-lock`) && !isLocked(owner)) RunLock.take(owner)?.release()
  }
}
