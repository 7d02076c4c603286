import { STEP_KINDS } from '../trajectory/step.ts'
import { RUN_SPAN, STEP_SPAN } from './keys.ts'

/**
 * The current schema. Tables (`migrations.ts`) begin with `_` and are compact: integer codes, and values as JSON text or as
 * a blob number. The views are for people and other tools. docs/run-file.md describes them, and they stay stable when the
 * tables change.
 */
export const SCHEMA_VERSION = 8
/** SQLite's application_id, in the header of the file: "mwrf", a manyworlds run file. */
export const APPLICATION_ID = 0x6d777266

/** The role of an attempt. */
export const ROLE = {
  /** The attempt is the task's response. */
  final: 0,
  /** The attempt failed, and the task was tried again. */
  retried: 1,
  /** Another attempt counts instead: this one came too late, or the task was rerun on request. */
  superseded: 2,
} as const

/** A value as JSON. For a large value: a JSON string with its beginning. */
const shown = (column: string) =>
  `CASE typeof(${column}) WHEN 'integer' THEN (SELECT preview FROM _blobs WHERE blob = ${column}) ELSE ${column} END`

const cut = (column: string) =>
  `coalesce((SELECT is_cut FROM _blobs WHERE typeof(${column}) = 'integer' AND blob = ${column}), 0)`

const time = (column: string) => `strftime('%Y-%m-%dT%H:%M:%fZ', ${column} / 1000.0, 'unixepoch')`

/** The id of the run that a row belongs to. Qualify a key that is also a column of `_run`, such as `epoch`. */
const runOf = (key: string) => `(SELECT run_id FROM _run WHERE run = ${key} / ${RUN_SPAN}) AS run_id`

const KIND = `CASE s.kind ${STEP_KINDS.map((kind, number) => `WHEN ${number} THEN '${kind}'`).join(' ')} END`

/** Whether SQL can show the whole step: it is neither compressed nor continues a list of an earlier step. */
const IS_WHOLE = `(typeof(s.record) = 'text' AND s.links IS NULL AND s.numbers IS NULL)`

/** Arguments of json_set for a field with a column of its own. Without a value they set `index`, which is set again below. */
function ifThere(field: string, value: string): string {
  const isNull = `s.${field} IS NULL`
  return `CASE WHEN ${isNull} THEN '$.index' ELSE '$.${field}' END, CASE WHEN ${isNull} THEN 0 ELSE ${value} END`
}

/** A step as JSON, including the fields that have columns of their own. */
const STEP = `CASE WHEN ${IS_WHOLE} THEN json_set(s.record, ${ifThere('reward', 's.reward')}, ${ifThere('usage', 'json(s.usage)')},
  '$.index', s.key % ${STEP_SPAN}, '$.atMs', s.at_us / 1000.0, '$.kind', ${KIND})
  WHEN typeof(s.record) = 'blob' THEN NULL ELSE ${shown('s.record')} END`

const STEPS_OF = (start: string) =>
  `FROM _steps s WHERE s.key >= ${start} * ${STEP_SPAN} AND s.key < (${start} + 1) * ${STEP_SPAN}`

/** The steps of an attempt as a JSON list. If SQL cannot show one of them, only their count. */
const TRAJECTORY = `CASE WHEN a.start IS NULL THEN ${shown('a.trajectory')}
  WHEN a.removed_steps IS NOT NULL THEN json_quote(a.removed_steps || ' steps, which were removed to save space')
  ELSE (SELECT CASE WHEN min(${IS_WHOLE}) THEN json_group_array(json(${STEP})) ELSE json_quote(count(*) || ' steps: see the view steps') END
  ${STEPS_OF('a.start')}) END`

const IS_CUT = [
  ...['answer', 'error', 'trajectory', 'logs'].map((column) => cut(`a.${column}`)),
  `coalesce((SELECT NOT min(${IS_WHOLE}) ${STEPS_OF('a.start')}), 0)`,
].join(' OR ')

/** The final observation of a step agent is its answer, so it is not stored twice. */
const FINAL_OBSERVATION = `CASE WHEN a.ending IS NOT NULL AND a.final_observation IS NULL THEN ${shown('a.answer')}
  ELSE ${shown('a.final_observation')} END`

const ATTEMPT = `
  t.id, a.status, a.attempt, w.id AS worker, w.host, w.pid, g.name AS agent,
  a.error_code, ${shown('a.answer')} AS answer, ${shown('a.error')} AS error,
  a.queued_us / 1000.0 AS queued_ms, a.run_us / 1000.0 AS run_ms, ${time('a.ended_at')} AS ended_at, a.usage,
  ${TRAJECTORY} AS trajectory, ${shown('a.logs')} AS logs, ${IS_CUT} AS is_cut, a.seq % ${RUN_SPAN} AS seq, a.epoch,
  a.reward, a.success, a.tokens_in, a.tokens_out, a.cost, a.digest, a.version, a.waited_us / 1000.0 AS waited_ms,
  a.ending, a.episode_reward, a.episode_success, ${FINAL_OBSERVATION} AS final_observation, a.removed_steps, ${runOf('a.seq')}`

const trainingOf = (key: string) => `(SELECT id FROM _trainings t WHERE t.training = ${key}) AS training`

/** In version 1, a large trajectory is shown as one row whose record is a JSON string. */
const inOldStep = (operator: string, field: string) =>
  `CASE o.type WHEN 'object' THEN o.value ${operator} '$.${field}' END`

const inStep = (field: string) => `CASE typeof(s.record) WHEN 'text' THEN s.record -> '$.${field}' END`

const JOINED = `_attempts a JOIN _tasks t USING (task) JOIN _agents g USING (agent) LEFT JOIN _workers w ON w.worker = a.worker`

export const VIEWS = `
CREATE VIEW run AS SELECT run_id, ${time('created_at')} AS created_at, manyworlds, script, seed,
  sequence_dependent, total, success, failed, timeout, crashed, cancelled, epoch AS sessions, ${trainingOf('_run.training')} FROM _run;
CREATE VIEW sessions AS SELECT epoch % ${RUN_SPAN} AS epoch, ${time('started_at')} AS started_at, ${time('ended_at')} AS ended_at,
  ending, error, ${time('seen_at')} AS seen_at, pid, host, node, config, ${runOf('s.epoch')} FROM _sessions s;
CREATE VIEW agents AS SELECT agent, epoch, name, module, fingerprint, ${shown('params')} AS params, ${runOf('agent')} FROM _agents;
CREATE VIEW workers AS SELECT worker, epoch, id, host, pid, ${runOf('worker')}, ${time('joined_at')} AS joined_at,
  ${time('left_at')} AS left_at, lost FROM _workers;
CREATE VIEW tasks AS SELECT t.id, t.place, p.id AS parent, nullif(t.parent_attempt, 0) AS parent_attempt, g.name AS agent,
  coalesce((SELECT status FROM _attempts a WHERE a.task = t.task AND a.role = ${ROLE.final}), 'pending') AS status,
  ${shown('t.input')} AS input, ${shown('t.info')} AS info, t.depends_on, t.options, lower(hex(t.hash)) AS hash,
  t.group_id, t.rollout, ${runOf('t.task')}
  FROM _tasks t JOIN _agents g USING (agent) LEFT JOIN _tasks p ON p.task = t.parent;
CREATE VIEW responses AS SELECT ${ATTEMPT} FROM ${JOINED} WHERE a.role = ${ROLE.final};
CREATE VIEW attempts AS SELECT
  CASE a.role WHEN ${ROLE.final} THEN 'final' WHEN ${ROLE.retried} THEN 'retried' ELSE 'superseded' END AS role, ${ATTEMPT}
  FROM ${JOINED};
CREATE VIEW starts AS SELECT t.id, b.attempt, w.id AS worker, ${time('b.at')} AS at, b.epoch, b.start, ${runOf('b.task')}
  FROM _starts b JOIN _tasks t USING (task) LEFT JOIN _workers w ON w.worker = b.worker;
CREATE VIEW steps AS SELECT t.id, b.attempt, s.key % ${STEP_SPAN} AS step, s.at_us / 1000.0 AS at_ms,
  ${inStep('action')} AS action, ${inStep('observation')} AS observation, s.reward, ${STEP} AS record,
  EXISTS (SELECT 1 FROM _attempts a WHERE a.task = b.task AND a.start = b.start AND a.role = ${ROLE.final}) AS is_final, ${KIND} AS kind, s.version, s.usage, s.links, NOT ${IS_WHOLE} AS is_cut,
  b.start, ${runOf('b.task')}
  FROM _steps s JOIN _starts b ON b.start = s.key / ${STEP_SPAN} JOIN _tasks t USING (task)
UNION ALL SELECT t.id, a.attempt, o.key, ${inOldStep('->>', 'atMs')},
  ${inOldStep('->', 'action')}, ${inOldStep('->', 'observation')}, ${inOldStep('->>', 'reward')}, o.value,
  a.role = ${ROLE.final}, 'note', NULL, ${inOldStep('->', 'usage')}, NULL, o.type <> 'object', NULL, ${runOf('t.task')}
  FROM _attempts a JOIN _tasks t USING (task), json_each(${shown('a.trajectory')}) o;
CREATE VIEW logs AS SELECT t.id, a.attempt, l.key + 1 AS line, l.value AS text, a.role = ${ROLE.final} AS is_final, ${runOf('t.task')}
  FROM _attempts a JOIN _tasks t USING (task), json_each(${shown('a.logs')}) l;
CREATE VIEW answers AS SELECT t.id, n.attempt, n.service, lower(hex(n.hash)) AS hash, n.occurrence, ${time('n.at')} AS at,
  ${shown('n.value')} AS value, ${runOf('n.task')} FROM _answers n JOIN _tasks t USING (task) WHERE n.begun = 0;
CREATE VIEW grades AS SELECT t.id, n.attempt, n.reward, n.success, n.grader, ${shown('n.record')} AS grade, ${time('n.at')} AS at,
  n.grade = (SELECT max(grade) FROM _grades m WHERE m.task = n.task) AS is_latest, ${runOf('n.task')}
  FROM _grades n JOIN _tasks t USING (task);
CREATE VIEW blobs AS SELECT blob, kind, size, length(data) AS stored, lower(hex(hash)) AS hash, is_cut, preview, ${runOf('blob')} FROM _blobs;
CREATE VIEW cache AS SELECT lower(hex(key)) AS key, model, ${time('at')} AS at, ${time('used_at')} AS used_at, status, headers, size,
  CASE typeof(body) WHEN 'text' THEN body END AS body FROM _cache;
CREATE VIEW trainings AS SELECT t.id, ${time('t.created_at')} AS created_at, t.manyworlds, t.script, t.agent, t.policy, t.seed, t.config,
  ${time('t.started_at')} AS started_at, ${time('t.seen_at')} AS seen_at, ${time('t.ended_at')} AS ended_at, t.ending, t.error, t.pid, t.host,
  t.sessions, (SELECT count(*) FROM _updates u WHERE u.training = t.training) AS updates, t.best FROM _trainings t;
CREATE VIEW plans AS SELECT ${trainingOf('p.training')}, p.number, p.epoch, p.version, p.run AS run_id, p.seed, p.tasks,
  EXISTS (SELECT 1 FROM _updates u WHERE u.training = p.training AND u.number = p.number) AS is_done, ${time('p.at')} AS at FROM _plans p;
CREATE VIEW updates AS SELECT ${trainingOf('u.training')}, u.number, u.epoch, u.version_in, u.version_out,
  u.report ->> '$.episodes' AS episodes, u.report ->> '$.reward' AS reward, u.report ->> '$.successRate' AS success_rate,
  u.report -> '$.metrics' AS metrics, u.report, u.members, u.batch_sha, u.state_sha, u.curve_sha, u.collect_ms, u.train_ms,
  ${time('u.at')} AS at FROM _updates u;
CREATE VIEW versions AS SELECT ${trainingOf('v.training')}, v.version, v.update_number, v.policy, v.sha256, v.bytes,
  v.kept AS is_kept, ${time('v.at')} AS at FROM _versions v;
CREATE VIEW evaluations AS SELECT ${trainingOf('e.training')}, e.version, e.split, e.run AS run_id, e.tasks, e.rollouts,
  e.summary, ${time('e.at')} AS at FROM _evals e;
`
