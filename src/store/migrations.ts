import { APPLICATION_ID, SCHEMA_VERSION, VIEWS } from './schema.ts'
import type { DatabaseSync } from './sqlite.ts'

/**
 * One function per version: entry n turns a store of version n into one of version n + 1, without moving data. A new
 * store runs all of them, so migrated and new stores have the same schema.
 */
const STEPS: readonly ((db: DatabaseSync) => void)[] = [
  firstTables,
  stepsAndManyRuns,
  answersThatCount,
  gradesAndRollouts,
  runsByTime,
  cachedReplies,
  trainings,
  comingAndGoing,
]

/** Migrates a store to the current version. Call it inside a transaction. */
export function migrate(db: DatabaseSync, from: number): void {
  for (const name of viewNames(db)) db.exec(`DROP VIEW "${name.replaceAll('"', '""')}"`)
  makeTables(db, from, SCHEMA_VERSION)
  db.exec(VIEWS)
  db.exec(`PRAGMA application_id = ${APPLICATION_ID}; PRAGMA user_version = ${SCHEMA_VERSION}`)
}

/** Migrates the tables only. From version 0, it creates them. */
export function makeTables(db: DatabaseSync, from: number, to: number): void {
  for (let version = from; version < to; version++) STEPS[version]!(db)
}

const viewNames = (db: DatabaseSync) =>
  (db.prepare(`SELECT name FROM sqlite_schema WHERE type = 'view'`).all() as { name: string }[]).map(({ name }) => name)

/** Version 1: one run per file; a trajectory is a value of its attempt. */
function firstTables(db: DatabaseSync): void {
  db.exec(`
CREATE TABLE _run (
  run_id TEXT NOT NULL, created_at INTEGER NOT NULL, manyworlds TEXT NOT NULL, script TEXT,
  seed INTEGER NOT NULL, sequence_dependent INTEGER NOT NULL,
  total INTEGER, epoch INTEGER NOT NULL,
  success INTEGER NOT NULL DEFAULT 0, failed INTEGER NOT NULL DEFAULT 0, timeout INTEGER NOT NULL DEFAULT 0,
  crashed INTEGER NOT NULL DEFAULT 0, cancelled INTEGER NOT NULL DEFAULT 0);
CREATE TABLE _sessions (
  epoch INTEGER PRIMARY KEY, started_at INTEGER NOT NULL, seen_at INTEGER NOT NULL, ended_at INTEGER, ending TEXT, error TEXT,
  pid INTEGER NOT NULL, host TEXT NOT NULL, node TEXT NOT NULL, config TEXT NOT NULL);
CREATE TABLE _agents (
  agent INTEGER PRIMARY KEY, epoch INTEGER NOT NULL, name TEXT NOT NULL, module TEXT NOT NULL, fingerprint TEXT, params);
CREATE TABLE _workers (
  worker INTEGER PRIMARY KEY, epoch INTEGER NOT NULL, id TEXT NOT NULL, host TEXT NOT NULL, pid INTEGER);
CREATE TABLE _tasks (
  task INTEGER PRIMARY KEY, id TEXT NOT NULL, parent INTEGER NOT NULL, parent_attempt INTEGER NOT NULL, place INTEGER,
  agent INTEGER NOT NULL, hash BLOB NOT NULL, begun INTEGER NOT NULL, input, info, depends_on TEXT, options TEXT);
CREATE UNIQUE INDEX _tasks_by_id ON _tasks (id, parent, parent_attempt);
CREATE TABLE _attempts (
  seq INTEGER PRIMARY KEY, task INTEGER NOT NULL, role INTEGER NOT NULL, attempt INTEGER NOT NULL,
  epoch INTEGER NOT NULL, ended_at INTEGER NOT NULL, status TEXT NOT NULL,
  queued_us INTEGER NOT NULL, run_us INTEGER NOT NULL, worker INTEGER,
  error_code TEXT, answer, error, trajectory, logs, usage TEXT);
CREATE INDEX _attempts_by_task ON _attempts (task);
CREATE TABLE _blobs (
  blob INTEGER PRIMARY KEY, hash BLOB NOT NULL, kind TEXT NOT NULL, size INTEGER NOT NULL,
  is_cut INTEGER NOT NULL, preview TEXT NOT NULL, data BLOB NOT NULL);
CREATE UNIQUE INDEX _blobs_by_hash ON _blobs (hash);`)
}

/** The columns and tables that a version adds. Data is never moved, so a reader can emulate the current version on an old store (`open-for-reading.ts`). */
export interface Additions {
  readonly columns: readonly (readonly [table: string, column: string, type: string])[]
  readonly tables: readonly (readonly [name: string, columns: string])[]
}

function add(db: DatabaseSync, { columns, tables }: Additions): void {
  for (const [table, column, type] of columns) db.exec(`ALTER TABLE ${table} ADD COLUMN ${column} ${type}`)
  for (const [name, definition] of tables) db.exec(`CREATE TABLE ${name} (${definition})`)
}

/** Version 2: steps are rows that are written while their task runs; a store may have many runs (`keys.ts`). */
function stepsAndManyRuns(db: DatabaseSync): void {
  add(db, ADDITIONS[2]!)
  db.exec(`
CREATE UNIQUE INDEX _run_by_number ON _run (run);
CREATE UNIQUE INDEX _run_by_id ON _run (run_id);
CREATE INDEX _starts_by_task ON _starts (task);
CREATE INDEX _tasks_by_agent ON _tasks (agent);
CREATE INDEX _tasks_by_group ON _tasks (group_id) WHERE group_id IS NOT NULL;
CREATE INDEX _attempts_not_success ON _attempts (status, seq) WHERE status <> 'success';
DROP INDEX _blobs_by_hash;
CREATE UNIQUE INDEX _blobs_by_hash ON _blobs (hash, blob / 2147483648);`)
}

/** Version 3: stored answers of durable services. */
function answersThatCount(db: DatabaseSync): void {
  add(db, ADDITIONS[3]!)
  db.exec('CREATE UNIQUE INDEX _answers_by_request ON _answers (task, attempt, hash, occurrence)')
}

/** Version 4: rollouts of tasks, how episodes ended, and grades. A task that is graded again has several grades. */
function gradesAndRollouts(db: DatabaseSync): void {
  add(db, ADDITIONS[4]!)
  db.exec('CREATE INDEX _grades_by_task ON _grades (task)')
}

/** Version 5: an index of runs by time. This version also corrects run_id in the view `sessions`. */
function runsByTime(db: DatabaseSync): void {
  db.exec('CREATE INDEX _run_by_time ON _run (created_at)')
}

/** Version 6: cached model replies, which belong to no run; and which service calls were in progress (`_answers.begun`). */
function cachedReplies(db: DatabaseSync): void {
  add(db, ADDITIONS[6]!)
  db.exec(`
CREATE UNIQUE INDEX _cache_by_key ON _cache (key);
CREATE INDEX _cache_by_use ON _cache (used_at);`)
}

/** Version 7: trainings (`trainings/`) and which runs belong to one; attempts whose steps were removed to save space. */
function trainings(db: DatabaseSync): void {
  add(db, ADDITIONS[7]!)
  db.exec(`
CREATE UNIQUE INDEX _trainings_by_id ON _trainings (id);
CREATE UNIQUE INDEX _plans_by_number ON _plans (training, number);
CREATE UNIQUE INDEX _updates_by_number ON _updates (training, number);
CREATE UNIQUE INDEX _versions_by_version ON _versions (training, version);
CREATE UNIQUE INDEX _evals_by_version ON _evals (training, version, split);
CREATE INDEX _run_by_training ON _run (training) WHERE training IS NOT NULL;`)
}

/** Version 8: when workers joined and left. */
function comingAndGoing(db: DatabaseSync): void {
  add(db, ADDITIONS[8]!)
}

/** Additions by version. A start is one lease of a task; `keys.ts` says how its steps are numbered. */
export const ADDITIONS: Readonly<Record<number, Additions>> = {
  2: {
    columns: [
      ['_run', 'run', 'INTEGER NOT NULL DEFAULT 0'],
      ['_sessions', 'owner', 'TEXT'],
      ['_tasks', 'group_id', 'TEXT'],
      ['_attempts', 'start', 'INTEGER'],
      ['_attempts', 'reward', 'REAL'],
      ['_attempts', 'success', 'INTEGER'],
      ['_attempts', 'tokens_in', 'INTEGER'],
      ['_attempts', 'tokens_out', 'INTEGER'],
      ['_attempts', 'cost', 'REAL'],
      ['_attempts', 'digest', 'TEXT'],
      ['_attempts', 'version', 'INTEGER'],
    ],
    tables: [
      [
        '_starts',
        `start INTEGER PRIMARY KEY, task INTEGER NOT NULL, attempt INTEGER NOT NULL, epoch INTEGER NOT NULL,
  number INTEGER NOT NULL, worker INTEGER, at INTEGER NOT NULL`,
      ],
      [
        '_steps',
        `key INTEGER PRIMARY KEY, kind INTEGER NOT NULL, at_us INTEGER NOT NULL, reward REAL, version INTEGER, usage TEXT,
  links TEXT, record, numbers BLOB`,
      ],
    ],
  },
  3: {
    columns: [['_attempts', 'waited_us', 'INTEGER NOT NULL DEFAULT 0']],
    tables: [
      [
        '_answers',
        `answer INTEGER PRIMARY KEY, task INTEGER NOT NULL, attempt INTEGER NOT NULL, service TEXT NOT NULL,
  hash BLOB NOT NULL, occurrence INTEGER NOT NULL, at INTEGER NOT NULL, value`,
      ],
    ],
  },
  4: {
    columns: [
      ['_tasks', 'rollout', 'INTEGER'],
      ['_attempts', 'ending', 'TEXT'],
      ['_attempts', 'episode_reward', 'REAL'],
      ['_attempts', 'episode_success', 'INTEGER'],
      ['_attempts', 'final_observation', ''],
    ],
    tables: [
      [
        '_grades',
        `grade INTEGER PRIMARY KEY, task INTEGER NOT NULL, attempt INTEGER NOT NULL, at INTEGER NOT NULL,
  reward REAL, success INTEGER, grader TEXT NOT NULL, record`,
      ],
    ],
  },
  6: {
    columns: [['_answers', 'begun', 'INTEGER NOT NULL DEFAULT 0']],
    tables: [
      [
        '_cache',
        `reply INTEGER PRIMARY KEY, key BLOB NOT NULL, model TEXT NOT NULL, at INTEGER NOT NULL, used_at INTEGER NOT NULL,
  status INTEGER NOT NULL, headers TEXT NOT NULL, size INTEGER NOT NULL, body NOT NULL`,
      ],
    ],
  },
  7: {
    columns: [
      ['_run', 'training', 'INTEGER'],
      // How many steps the attempt had. NULL: its steps were not removed.
      ['_attempts', 'removed_steps', 'INTEGER'],
    ],
    tables: [
      [
        '_trainings',
        `training INTEGER PRIMARY KEY, id TEXT NOT NULL, created_at INTEGER NOT NULL, manyworlds TEXT NOT NULL, script TEXT,
  agent TEXT NOT NULL, policy TEXT NOT NULL, seed INTEGER NOT NULL, config TEXT NOT NULL, owner TEXT, pid INTEGER NOT NULL,
  host TEXT NOT NULL, started_at INTEGER NOT NULL, seen_at INTEGER NOT NULL, ended_at INTEGER, ending TEXT, error TEXT,
  sessions INTEGER NOT NULL, sampler TEXT, best INTEGER`,
      ],
      [
        '_plans',
        `training INTEGER NOT NULL, number INTEGER NOT NULL, epoch INTEGER NOT NULL, version INTEGER NOT NULL, run TEXT NOT NULL,
  seed INTEGER NOT NULL, tasks TEXT NOT NULL, at INTEGER NOT NULL`,
      ],
      [
        '_updates',
        `training INTEGER NOT NULL, number INTEGER NOT NULL, epoch INTEGER NOT NULL, version_in INTEGER NOT NULL,
  version_out INTEGER, members TEXT NOT NULL, batch_sha TEXT NOT NULL, state_sha TEXT NOT NULL, report TEXT NOT NULL,
  collect_ms REAL NOT NULL, train_ms REAL NOT NULL, curve_sha TEXT NOT NULL, at INTEGER NOT NULL`,
      ],
      [
        '_versions',
        `training INTEGER NOT NULL, version INTEGER NOT NULL, update_number INTEGER, sha256 TEXT NOT NULL, policy TEXT NOT NULL,
  bytes INTEGER NOT NULL, kept INTEGER NOT NULL, at INTEGER NOT NULL`,
      ],
      [
        '_evals',
        `training INTEGER NOT NULL, version INTEGER NOT NULL, split TEXT NOT NULL, run TEXT NOT NULL, tasks INTEGER NOT NULL,
  rollouts INTEGER NOT NULL, summary TEXT NOT NULL, at INTEGER NOT NULL`,
      ],
    ],
  },
  8: {
    columns: [
      ['_workers', 'joined_at', 'INTEGER'],
      // NULL: it was there until the session ended.
      ['_workers', 'left_at', 'INTEGER'],
      // Why it was lost. NULL: it was not.
      ['_workers', 'lost', 'TEXT'],
    ],
    tables: [],
  },
}
