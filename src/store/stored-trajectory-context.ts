import { setImmediate as nextTurn } from 'node:timers/promises'
import type { TrajectorySource } from '../response.ts'
import type { TaskResponse } from '../task.ts'
import type { Trajectory } from '../trajectory/trajectory.ts'
import type { TrajectoryContext } from '../trajectory/trajectory-of.ts'
import { BlobReader } from './blobs.ts'
import { keyOf } from './keys.ts'
import { type RunInStore, withStore } from './read-connections.ts'
import { ATTEMPT_COLUMNS, ATTEMPT_JOIN, type AttemptColumns, responseOf } from './rows.ts'
import { ROLE } from './schema.ts'
import { type DatabaseSync, prepared } from './sqlite.ts'
import { type Columns, checkedRow, isAnything, isFields, isNumber, isText, isWhole, orNull } from './stored-shapes.ts'

interface TaskRow {
  readonly task: number
  readonly input: unknown
  readonly info: unknown
  readonly groupId: string | null
}

const TASK: Columns<TaskRow> = {
  task: isWhole,
  input: isAnything,
  info: isAnything,
  groupId: orNull(isText),
}

const RUN: Columns<{ id: string; seed: number }> = { id: isText, seed: isNumber }
const SUB_TASK: Columns<SubTaskRow> = { task: isWhole, id: isText, attempt: isWhole }

interface SubTaskRow {
  readonly task: number
  readonly id: string
  /** The attempt of the parent that requested the sub-task. */
  readonly attempt: number
}

const RUN_SQL = 'SELECT run_id AS id, seed FROM _run WHERE run = ?'

const TASK_SQL = `SELECT task, input, info, group_id AS groupId FROM _tasks
  WHERE id = ? AND task >= ? AND task < ? ORDER BY parent_attempt DESC LIMIT 1`

/**
 * Finds sub-tasks through the index on ids: the id of a sub-task begins with that of its parent and a slash. The upper
 * bound ends in '0' because that is the character after '/'.
 */
const SUB_TASKS_SQL = `SELECT task, id, parent_attempt AS attempt FROM _tasks
  WHERE id > ? || '/' AND id < ? || '0' AND parent = ? AND parent_attempt >= ?`

const GROUP_SQL = 'SELECT count(*) AS size FROM _tasks WHERE group_id = ? AND task >= ? AND task < ?'

const RESPONSE_SQL = `SELECT t.id, g.name AS agentName, ${ATTEMPT_COLUMNS}
  FROM _attempts a JOIN _tasks t USING (task) JOIN _agents g USING (agent) ${ATTEMPT_JOIN}
  WHERE a.task = ? AND a.role = ${ROLE.final}`

/** Sub-tasks that are read before other work gets its turn. Reading the steps of each also yields. */
const TURN_SUB_TASKS = 32

const byNumber = new Intl.Collator('en', { numeric: true })

/** Reads what a trajectory needs besides the response: task, run, group size and sub-tasks. */
export class StoredTrajectoryContext implements TrajectorySource {
  readonly #from: RunInStore

  constructor(from: RunInStore) {
    this.#from = from
  }

  async around(id: string, attempts: number): Promise<TrajectoryContext> {
    const found = withStore(this.#from, (db) => this.#look(db, id, attempts))
    if (found === undefined) return {}
    const { subTasks, ...rest } = found
    const trajectories: Trajectory[] = []
    for (const [place, task] of subTasks.entries()) {
      if (place % TURN_SUB_TASKS === TURN_SUB_TASKS - 1) await nextTurn()
      const response = withStore(this.#from, (db) => this.#response(db, task))
      // A sub-task that was cancelled with its parent may have no response.
      if (response) trajectories.push(await response.toTrajectory())
    }
    return { ...rest, subTasks: trajectories }
  }

  #look(db: DatabaseSync, id: string, attempts: number) {
    const { run } = this.#from.run
    const range = [keyOf(run, 0), keyOf(run + 1, 0)] as const
    const found = prepared(db, TASK_SQL).get(id, ...range)
    if (found === undefined) return undefined
    const { task, input, info, groupId } = checkedRow(found, TASK, `task '${id.slice(0, 80)}'`)
    const blobs = new BlobReader(db)
    const known = blobs.read(info)
    const metadata = isFields(known) && isFields(known.metadata) ? known.metadata : undefined
    const group = groupId === null ? undefined : (prepared(db, GROUP_SQL).get(groupId, ...range) as { size: number })
    return {
      run: checkedRow(prepared(db, RUN_SQL).get(run), RUN, 'the run'),
      task: { input: blobs.read(input), metadata },
      ...(group && { groupSize: group.size }),
      subTasks: subTasksOf(db, id, task, attempts),
    }
  }

  #response(db: DatabaseSync, task: number): TaskResponse | undefined {
    const row = prepared(db, RESPONSE_SQL).get(task) as (AttemptColumns & { id: string; agentName: string }) | undefined
    return row && responseOf(row.id, row.agentName, row, { blobs: new BlobReader(db), from: this.#from, around: this })
  }
}

/** The sub-tasks that the last attempt requested, sorted by name, because the order of requests may depend on timing. */
function subTasksOf(db: DatabaseSync, id: string, task: number, attempts: number): number[] {
  const rows = prepared(db, SUB_TASKS_SQL).all(id, id, task, attempts)
  const children = rows.map((row) => checkedRow(row, SUB_TASK, 'a sub-task'))
  const last = children.reduce((most, { attempt }) => Math.max(most, attempt), 0)
  const asked = children.filter(({ attempt }) => attempt === last)
  return asked.sort((a, b) => byNumber.compare(a.id, b.id)).map((child) => child.task)
}
