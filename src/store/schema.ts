/**
 * The run file, version by version. Tables begin with `_` and are written for speed: numbers for what repeats, a value
 * as JSON text or as the number of a blob. The views beside them are for people and for other tools; docs/run-file.md
 * describes them, and they stay when the tables change.
 */
export const SCHEMA_VERSION = 1
/** In the header of the file, where `file` and SQLite find it: "mwrf", a manyworlds run file. */
export const APPLICATION_ID = 0x6d777266

/** What an attempt is to its task. */
export const ROLE = {
  /** It is the task's response. */
  final: 0,
  /** It failed, and the task was tried again. */
  retried: 1,
  /** Another counts instead: it came too late, or the task was run again on request. */
  superseded: 2,
} as const

export const TABLES = `
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
CREATE UNIQUE INDEX _blobs_by_hash ON _blobs (hash);
`

/** A value as a reader wants it: its JSON or, where it is large, a JSON text with the beginning of it. */
const shown = (column: string) =>
  `CASE typeof(${column}) WHEN 'integer' THEN (SELECT preview FROM _blobs WHERE blob = ${column}) ELSE ${column} END`

const cut = (column: string) =>
  `coalesce((SELECT is_cut FROM _blobs WHERE typeof(${column}) = 'integer' AND blob = ${column}), 0)`

const time = (column: string) => `strftime('%Y-%m-%dT%H:%M:%fZ', ${column} / 1000.0, 'unixepoch')`

const attempt = `
  t.id, a.status, a.attempt, w.id AS worker, w.host, w.pid, g.name AS agent,
  a.error_code, ${shown('a.answer')} AS answer, ${shown('a.error')} AS error,
  a.queued_us / 1000.0 AS queued_ms, a.run_us / 1000.0 AS run_ms, ${time('a.ended_at')} AS ended_at, a.usage,
  ${shown('a.trajectory')} AS trajectory, ${shown('a.logs')} AS logs,
  ${['answer', 'error', 'trajectory', 'logs'].map((column) => cut(`a.${column}`)).join(' OR ')} AS is_cut, a.seq, a.epoch`

/** Of a trajectory that is cut there is one row, whose record is a text. */
const inStep = (operator: string, field: string) =>
  `CASE s.type WHEN 'object' THEN s.value ${operator} '$.${field}' END`

const JOINED = `_attempts a JOIN _tasks t USING (task) JOIN _agents g USING (agent) LEFT JOIN _workers w ON w.worker = a.worker`

const VIEWS = `
CREATE VIEW run AS SELECT run_id, ${time('created_at')} AS created_at, manyworlds, script, seed,
  sequence_dependent, total, success, failed, timeout, crashed, cancelled, epoch AS sessions FROM _run;
CREATE VIEW sessions AS SELECT epoch, ${time('started_at')} AS started_at, ${time('ended_at')} AS ended_at, ending, error,
  ${time('seen_at')} AS seen_at, pid, host, node, config FROM _sessions;
CREATE VIEW agents AS SELECT agent, epoch, name, module, fingerprint, ${shown('params')} AS params FROM _agents;
CREATE VIEW workers AS SELECT worker, epoch, id, host, pid FROM _workers;
CREATE VIEW tasks AS SELECT t.id, t.place, p.id AS parent, nullif(t.parent_attempt, 0) AS parent_attempt, g.name AS agent,
  coalesce((SELECT status FROM _attempts a WHERE a.task = t.task AND a.role = ${ROLE.final}), 'pending') AS status,
  ${shown('t.input')} AS input, ${shown('t.info')} AS info, t.depends_on, t.options, lower(hex(t.hash)) AS hash
  FROM _tasks t JOIN _agents g USING (agent) LEFT JOIN _tasks p ON p.task = t.parent;
CREATE VIEW responses AS SELECT ${attempt} FROM ${JOINED} WHERE a.role = ${ROLE.final};
CREATE VIEW attempts AS SELECT
  CASE a.role WHEN ${ROLE.final} THEN 'final' WHEN ${ROLE.retried} THEN 'retried' ELSE 'superseded' END AS role, ${attempt}
  FROM ${JOINED};
CREATE VIEW steps AS SELECT t.id, a.attempt, s.key AS step, ${inStep('->>', 'atMs')} AS at_ms,
  ${inStep('->', 'action')} AS action, ${inStep('->', 'observation')} AS observation, ${inStep('->>', 'reward')} AS reward,
  s.value AS record, a.role = ${ROLE.final} AS is_final
  FROM _attempts a JOIN _tasks t USING (task), json_each(${shown('a.trajectory')}) s;
CREATE VIEW logs AS SELECT t.id, a.attempt, l.key + 1 AS line, l.value AS text, a.role = ${ROLE.final} AS is_final
  FROM _attempts a JOIN _tasks t USING (task), json_each(${shown('a.logs')}) l;
CREATE VIEW blobs AS SELECT blob, kind, size, length(data) AS stored, lower(hex(hash)) AS hash, is_cut, preview FROM _blobs;
`

export const CREATE = `${TABLES}${VIEWS}
PRAGMA application_id = ${APPLICATION_ID};
PRAGMA user_version = ${SCHEMA_VERSION};
`
