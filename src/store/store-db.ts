import { randomBytes } from 'node:crypto'
import { existsSync, readdirSync, statSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import type { StatementSync } from 'node:sqlite'
import { ManyworldsError } from '../errors.ts'
import { makeFolders } from '../make-folders.ts'
import { pragma, refuseOtherSchema, schemaVersion } from './checks.ts'
import { MOST_STARTS } from './keys.ts'
import { isLocked, RunLock } from './lock.ts'
import { migrate } from './migrations.ts'
import { addCompatViews, dropCompatViews } from './open-for-reading.ts'
import { SCHEMA_VERSION } from './schema.ts'
import { type DatabaseSync, openFile } from './sqlite.ts'
import { locked } from './store-errors.ts'

/** How long SQLite itself waits for a lock of another process. */
const BUSY_MS = 10_000
/** Checkpoint after this many pages in the log, so that a page that changes often is copied once. */
const LOG_PAGES = 4000

/**
 * An open store with an owner: a random name with a lock file that is held while the process lives. Drivers share a store;
 * SQLite lets one of them write at a time. Each session names the owner of its run.
 */
export class StoreDb {
  readonly path: string
  readonly db: DatabaseSync
  /** The owner of the runs that this process writes. */
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

  /** Opens or creates the store. An existing store is not changed before the first transaction. */
  static open(path: string, shared: boolean): StoreDb {
    makeFolders(dirname(path))
    const db = openFile(path, { timeout: BUSY_MS })
    try {
      if (!isEmpty(db)) refuseOtherSchema(db, path)
      else create(db, shared)
      addCompatViews(db)
      return new StoreDb(path, db)
    } catch (error) {
      db.close()
      throw error
    }
  }

  /** Runs `write` in a transaction. `full`: with synchronous = FULL. */
  transact<T>(full: boolean, write: () => T): T {
    this.#assertExists()
    this.#makeReady()
    this.#setSynchronous(full ? 'FULL' : 'NORMAL')
    this.#lastStart = undefined
    this.db.exec('BEGIN IMMEDIATE')
    try {
      const result = write()
      this.db.exec('COMMIT')
      return result
    } catch (error) {
      // After some errors SQLite has already rolled back.
      if (this.db.isTransaction) this.db.exec('ROLLBACK')
      throw error
    }
  }

  /** Checkpoints: moves the log into the file, as far as readers allow. */
  checkpoint(): void {
    this.db.exec('PRAGMA wal_checkpoint(PASSIVE)')
  }

  /** Returns free pages to the file system. Returns true if there are more. */
  returnFreePages(pages: number): boolean {
    const unused = () => pragma(this.db, 'freelist_count')
    const before = unused()
    if (before > 0) this.db.exec(`PRAGMA incremental_vacuum(${pages})`)
    const after = unused()
    // Without auto_vacuum, for example in a copy made by another tool, nothing is returned.
    return after > 0 && after < before
  }

  /** A prepared statement, shared by all runs. */
  statement(sql: string): StatementSync {
    let statement = this.#statements.get(sql)
    if (statement === undefined) this.#statements.set(sql, (statement = this.db.prepare(sql)))
    return statement
  }

  /** Returns the next start number. Call this inside a transaction, so that no other driver takes the same number. */
  nextStart(): number {
    this.#lastStart ??= (
      this.statement('SELECT coalesce(max(start), 0) AS last FROM _starts').get() as { last: number }
    ).last
    if (++this.#lastStart < MOST_STARTS) return this.#lastStart
    throw new ManyworldsError(
      'STORE_FULL',
      `${this.path} has reached its limit of ${MOST_STARTS} attempts; use another folder: \`store\` (--store)`,
    )
  }

  isAlive(owner: string | null): boolean {
    return owner === this.owner || ownerIsAlive(this.path, owner)
  }

  /** `plain`: leave WAL mode, so that a single file remains that can be read anywhere. */
  close(plain: boolean): void {
    try {
      if (plain) this.db.exec('PRAGMA busy_timeout = 50; PRAGMA journal_mode = DELETE')
    } catch {
      // A reader has the store open. It stays in WAL mode, which works as well.
    }
    this.db.close()
    this.#lock.release()
  }

  /** False if the file was removed or replaced. */
  get exists(): boolean {
    return statSync(this.path, { throwIfNoEntry: false })?.ino === this.#inode
  }

  #assertExists(): void {
    if (!this.exists)
      throw new ManyworldsError(
        'STORE_FAILED',
        `${this.path} was removed or replaced while this run was in progress; nothing more is stored and the run cannot be resumed`,
      )
  }

  #makeReady(): void {
    if (this.#isReady) return
    this.db.exec(`PRAGMA journal_mode = WAL; PRAGMA wal_autocheckpoint = ${LOG_PAGES}`)
    if (schemaVersion(this.db) < SCHEMA_VERSION) this.#migrate()
    this.#isReady = true
  }

  #migrate(): void {
    // Drivers of version 1 lock the file itself while they write.
    const lock = RunLock.take(this.path)
    if (!lock) throw locked(this.path, undefined)
    try {
      dropCompatViews(this.db)
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

/** A driver that died while creating the file leaves an empty one. */
const isEmpty = (db: DatabaseSync) => db.prepare('SELECT 1 FROM sqlite_schema').get() === undefined

function create(db: DatabaseSync, shared: boolean): void {
  if (shared) db.exec('PRAGMA auto_vacuum = INCREMENTAL')
  // An empty store needs no fsync: a power cut cannot lose anything.
  db.exec('PRAGMA synchronous = OFF; PRAGMA journal_mode = WAL; BEGIN IMMEDIATE')
  // Another driver may have created it meanwhile.
  if (isEmpty(db)) migrate(db, 0)
  db.exec('COMMIT')
}

const OWNER = /^[0-9a-f]{12}$/

const ownerPath = (path: string, owner: string) => `${path}-owner-${owner}`

/** Whether the process of an owner is alive. */
export function ownerIsAlive(path: string, owner: string | null): boolean {
  // A driver of version 1 locks the file itself.
  if (owner === null) return isLocked(path)
  // The owner becomes part of a path, and the file may be hostile.
  return OWNER.test(owner) && isLocked(ownerPath(path, owner))
}

/** Removes the lock files of drivers that were killed. */
function removeDeadOwners(path: string): void {
  const beginning = `${basename(path)}-owner-`
  for (const name of readdirSync(dirname(path))) {
    if (!name.startsWith(beginning) || !name.endsWith('-lock')) continue
    const owner = join(dirname(path), name.slice(0, -'-lock'.length))
    // `take` waits for a lock that is held, so skip living owners.
    if (existsSync(`${owner}-lock`) && !isLocked(owner)) RunLock.take(owner)?.release()
  }
}
