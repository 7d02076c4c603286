import { numberOf } from '../keys.ts'
import { type Columns, isText, isTime, isWhole, oneOf, orNull } from '../stored-shapes.ts'
import type { PagedRun } from './paged-run.ts'

const TRAINING = 'SELECT t.id FROM _run r JOIN _trainings t ON t.training = r.training WHERE r.run = ?'

/** The id of the training that the run belongs to. */
export const trainingOf = (run: PagedRun): string | undefined =>
  run.row<{ id: string }>(TRAINING, { id: isText }, 'a training', run.run)?.id

export interface SessionLine {
  readonly number: number
  readonly startedAt: number
  readonly endedAt: number | null
  readonly seenAt: number
  readonly ending: 'finished' | 'interrupted' | 'failed' | null
  readonly error: string | null
  readonly host: string
  readonly pid: number
  readonly node: string
  /** JSON. */
  readonly config: string
}

const SESSION: Columns<SessionLine> = {
  number: isWhole,
  startedAt: isTime,
  endedAt: orNull(isTime),
  seenAt: isTime,
  ending: oneOf('finished', 'interrupted', 'failed', null),
  error: orNull(isText),
  host: isText,
  pid: isWhole,
  node: isText,
  config: isText,
}

const SESSIONS = `SELECT epoch AS number, started_at AS startedAt, ended_at AS endedAt, seen_at AS seenAt, ending, error, host, pid, node, config
  FROM _sessions WHERE epoch >= ? AND epoch < ? ORDER BY epoch`

export const sessionsOf = (run: PagedRun): SessionLine[] =>
  run.rows(SESSIONS, SESSION, 'a session', ...run.range).map((row) => ({ ...row, number: numberOf(row.number) }))

export interface AgentLine {
  readonly key: number
  readonly name: string
  readonly module: string
}

const AGENT: Columns<AgentLine> = { key: isWhole, name: isText, module: isText }

/** The agents with higher numbers than `after`. */
export const agentsOf = (run: PagedRun, after = 0): AgentLine[] =>
  run
    .rows(
      'SELECT agent AS key, name, module FROM _agents WHERE agent > ? AND agent < ? ORDER BY agent',
      AGENT,
      'an agent',
      run.key(after),
      run.range[1],
    )
    .map((row) => ({ ...row, key: numberOf(row.key) }))

export interface WorkerLine {
  readonly key: number
  /** The number of the session. */
  readonly session: number
  readonly id: string
  readonly host: string
  readonly pid: number | null
  /** Null in runs of earlier versions. */
  readonly joinedAt: number | null
  readonly leftAt: number | null
  /** Why it was lost. */
  readonly lost: string | null
}

const WORKER: Columns<WorkerLine> = {
  key: isWhole,
  session: isWhole,
  id: isText,
  host: isText,
  pid: orNull(isWhole),
  joinedAt: orNull(isTime),
  leftAt: orNull(isTime),
  lost: orNull(isText),
}

const WORKERS =
  'SELECT worker AS key, epoch AS session, id, host, pid, joined_at AS joinedAt, left_at AS leftAt, lost FROM _workers WHERE worker >= ? AND worker < ? ORDER BY worker'

export const workersOf = (run: PagedRun): WorkerLine[] =>
  run.rows(WORKERS, WORKER, 'a worker', ...run.range).map((row) => ({ ...row, key: numberOf(row.key) }))
