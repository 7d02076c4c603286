import { statSync } from 'node:fs'
import { ManyworldsError } from '../errors.ts'
import { runArgument } from '../text/own-command.ts'
import { checkedRun, quickCheck, type RunColumns, refuseOtherHeader } from './checks.ts'
import { keyOf, MOST_RUNS, RUN_SPAN } from './keys.ts'
import type { Begun, Ending, Opened, OpenRequest, Row, RunHeader, Session } from './messages.ts'
import { RowWriter } from './row-writer.ts'
import type { StoreDb } from './store-db.ts'
import { corrupt, locked } from './store-errors.ts'
import { type Columns, checkedRow, isText, isTime, isWhole, orNull } from './stored-shapes.ts'
import { trainingOfNewRun } from './trainings/training-ids.ts'

/** Writes one run, for the driver that owns it. */
export class RunWriter {
  readonly store: StoreDb
  readonly #request: OpenRequest
  readonly #full: boolean
  /** Numbers of the runs of this store that this process has open. */
  readonly #open: Set<number>
  #run: number | undefined
  #rows: RowWriter | undefined
  #epoch = 0
  #takenOver = false

  private constructor(store: StoreDb, request: OpenRequest, run: number | undefined, open: Set<number>) {
    this.store = store
    this.#request = request
    this.#full = request.durability === 'full'
    this.#run = run
    this.#open = open
  }

  get keep(): OpenRequest['keep'] {
    return this.#request.keep
  }

  /** Finds and checks the run. Writes nothing before the first session. */
  static open(store: StoreDb, request: OpenRequest, open: Set<number>): { writer: RunWriter; opened: Opened } {
    const { header, mode, shared } = request
    const { db, path } = store
    const run = findRun(store, header.runId, shared)
    if (run !== undefined && mode === 'start') throw alreadyThere(path, run.run_id)
    if (run === undefined && mode === 'resume') throw notFound(path, header.runId)
    if (run !== undefined) {
      if (!shared) quickCheck(db, path)
      refuseOtherHeader(run, header, path)
      refuseOwned(store, run, open)
    }
    const writer = new RunWriter(store, request, run?.run, open)
    return { writer, opened: { run: run?.run, next: nextNumbers(store, run?.run) } }
  }

  /** Begins a session, if one is given, and writes rows, all in one transaction. */
  write(rows: readonly Row[], session: Session | undefined): Begun | undefined {
    const before = this.#run
    try {
      const begun = this.store.transact(this.#full, () => {
        const begun = session && this.#begin(session)
        if (!begun) this.#own()
        for (const row of rows) this.#rows!.write(row)
        if (rows.length > 0) this.#rows!.count()
        return begun
      })
      this.#rows!.committed()
      if (begun) this.#open.add(begun.run)
      return begun
    } catch (error) {
      if (session) {
        this.#run = before
        this.#rows = undefined
      } else this.#rows!.rolledBack()
      throw error
    }
  }

  /** Begins a session. From here on, a driver with an earlier epoch can no longer write. */
  #begin({ pid, host, node, config, total }: Session): Begun {
    const { store } = this
    const run = this.#claim()
    const { epoch, createdAt } = store
      .statement('UPDATE _run SET epoch = epoch + 1 WHERE run = ? RETURNING epoch, created_at AS createdAt')
      .get(run) as { epoch: number; createdAt: number }
    if (total !== null) store.statement('UPDATE _run SET total = ? WHERE run = ?').run(total, run)
    store
      .statement(
        'INSERT INTO _sessions (epoch, started_at, seen_at, pid, host, node, config, owner) VALUES (?, ?, ?, ?, ?, ?, ?, ?)',
      )
      .run(keyOf(run, epoch), Date.now(), Date.now(), pid, host, node, config, store.owner)
    this.#run = run
    this.#epoch = epoch
    this.#rows = new RowWriter(store, run, epoch)
    return { run, createdAt, epoch }
  }

  /** Writes how the session ended, if one has begun. */
  end(ending: Ending | undefined): void {
    if (this.#run !== undefined) this.#open.delete(this.#run)
    if (!ending || this.#takenOver || this.#rows === undefined) return
    this.store
      .statement('UPDATE _sessions SET ended_at = ?, ending = ?, error = ? WHERE epoch = ?')
      .run(Date.now(), ending.how, ending.error, keyOf(this.#run!, this.#epoch))
  }

  /** Returns the number of the run, and creates the run if it is new. Throws if another driver owns it. */
  #claim(): number {
    const { store } = this
    const { header, mode, shared } = this.#request
    // Another driver may have created it since `open`.
    const known = findRun(store, header.runId, shared)
    if (known === undefined) return create(store, header, shared)
    if (mode === 'start') throw alreadyThere(store.path, known.run_id)
    refuseOwned(store, known, this.#open)
    return known.run
  }

  /** Throws if another driver has begun a session since this one. */
  #own(): void {
    this.#takenOver = !this.#rows!.isLatest()
    if (this.#takenOver)
      throw new ManyworldsError(
        'RUN_LOCKED',
        `another driver has taken over run '${this.#request.header.runId}' in ${this.store.path}; this driver stops writing`,
      )
  }
}

type Statements = Pick<StoreDb, 'statement'>

/** In a single-run file, any id finds the run; `refuseOtherHeader` then reports a wrong id. */
function findRun(store: Statements, runId: string, shared: boolean): RunColumns | undefined {
  const row =
    store.statement('SELECT * FROM _run WHERE run_id = ?').get(runId) ??
    (shared ? undefined : store.statement('SELECT * FROM _run LIMIT 1').get())
  return row && checkedRun(row)
}

/** Returns the number for a new run. Call this inside a transaction, so that no other driver takes the same number. */
export function newRunNumber(store: Statements, shared: boolean): number {
  if (!shared) return 0
  const { last } = store.statement('SELECT coalesce(max(run), 0) AS last FROM _run').get() as { last: number }
  if (last + 1 < MOST_RUNS) return last + 1
  const { free } = store.statement(LOWEST_FREE).get() as { free: number }
  if (free < MOST_RUNS) return free
  throw new ManyworldsError(
    'STORE_FULL',
    `this store has ${MOST_RUNS - 1} runs, which is the maximum. Remove some (\`manyworlds rm\`, \`keep\`), or use another folder: \`store\` (--store, MANYWORLDS_STORE)`,
  )
}

/** Finds the number of a removed run. A server with `keep` reaches the last number after some hours and then reuses numbers. */
const LOWEST_FREE = `SELECT min(n) AS free FROM (SELECT 1 AS n WHERE NOT EXISTS (SELECT 1 FROM _run WHERE run = 1)
  UNION ALL SELECT * FROM (SELECT run + 1 FROM _run r WHERE run >= 1
  AND NOT EXISTS (SELECT 1 FROM _run WHERE run = r.run + 1) ORDER BY run LIMIT 1))`

function create(store: Statements, header: RunHeader, shared: boolean): number {
  const { runId, seed, sequenceDependent, manyworlds, script } = header
  const run = newRunNumber(store, shared)
  const training = trainingOfNewRun(store, runId)
  store
    .statement(
      `INSERT INTO _run (run, run_id, created_at, manyworlds, script, seed, sequence_dependent, epoch, training) VALUES (?, ?, ?, ?, ?, ?, ?, 0, ?)`,
    )
    .run(run, runId, Date.now(), manyworlds, script, seed, Number(sequenceDependent), training)
  return run
}

/** Throws RUN_LOCKED if a living driver, or another call in this process, owns the run. */
function refuseOwned(store: StoreDb, { run, run_id: runId }: RunColumns, open: ReadonlySet<number>): void {
  const last = lastSession(store, run)
  if (last === undefined || last.endedAt !== null) return
  if (last.owner === store.owner ? open.has(run) : store.isAlive(last.owner))
    throw locked(store.path, { runId, ...last })
}

export interface LastSession {
  readonly owner: string | null
  readonly endedAt: number | null
  readonly pid: number
  readonly host: string
  readonly startedAt: number
}

const SESSION: Columns<LastSession> = {
  owner: orNull(isText),
  endedAt: orNull(isTime),
  pid: isWhole,
  host: isText,
  startedAt: isTime,
}

export function lastSession(store: Statements, run: number): LastSession | undefined {
  const row = store
    .statement(
      `SELECT owner, ended_at AS endedAt, pid, host, started_at AS startedAt FROM _sessions
       WHERE epoch > ? AND epoch < ? ORDER BY epoch DESC LIMIT 1`,
    )
    .get(keyOf(run, 0), keyOf(run + 1, 0))
  return row && checkedRow(row, SESSION, 'the last session')
}

function nextNumbers(store: Statements, run: number | undefined): Opened['next'] {
  const next = (table: string, key: string) => {
    if (run === undefined) return 1
    const last = store.statement(`SELECT max(${key}) AS last FROM ${table} WHERE ${key} > ? AND ${key} < ?`)
    const row = last.get(keyOf(run, 0), keyOf(run + 1, 0))
    return ((checkedRow<{ last: number | null }>(row, { last: orNull(isWhole) }, table).last ?? 0) % RUN_SPAN) + 1
  }
  return {
    agent: next('_agents', 'agent'),
    worker: next('_workers', 'worker'),
    task: next('_tasks', 'task'),
    answer: next('_answers', 'answer'),
    grade: next('_grades', 'grade'),
  }
}

/** Throws if the file of a run to resume is missing or empty. Call this before opening the store, which would create the file. */
export function refuseMissing({ path, mode, header }: OpenRequest): void {
  if (mode !== 'resume') return
  const file = statSync(path, { throwIfNoEntry: false })
  if (!file) throw notFound(path, header.runId)
  if (file.size === 0) throw corrupt(path, 'it is empty')
}

const notFound = (path: string, runId: string) =>
  new ManyworldsError(
    'RUN_NOT_FOUND',
    `no run '${runId}' to resume in ${path}. Run \`manyworlds runs\` to list the stored runs, or use \`resume: 'auto'\` with a runId to start the run if it does not exist`,
  )

const alreadyThere = (path: string, runId: string) =>
  new ManyworldsError(
    'RUN_EXISTS',
    `run '${runId}' already exists (${path}). Resume it with \`resume: '${runId}'\` (\`--resume ${runArgument(runId, path)}\`); use \`resume: 'auto'\` to start or resume; give another runId; or remove it with \`manyworlds rm ${runArgument(runId, path)}\``,
  )
