import type { OutcomeStatus } from '../grade/blame.ts'
import { type Outcome, taskOfRollout } from '../grade/outcome.ts'
import { currentCode } from '../renamed-codes.ts'
import type { BlobReader } from './blobs.ts'
import { ROLE } from './schema.ts'
import { gradeOf } from './stored-experience.ts'
import {
  type Columns,
  checkedRow,
  isAnything,
  isFields,
  isNumber,
  isStatus,
  isText,
  isWhole,
  orNull,
  usageOf,
} from './stored-shapes.ts'

/** Reads all tasks of a run with the outcome that evaluation needs. */
export const ROLLOUTS = `SELECT t.task, t.id, t.rollout, t.info, a.status, a.error_code AS code, a.usage, a.run_us AS runUs, a.epoch AS session,
  (SELECT n.record FROM _grades n WHERE n.task = t.task ORDER BY n.grade DESC LIMIT 1) AS grade,
  a.episode_reward AS reward, a.episode_success AS success
  FROM _tasks t LEFT JOIN _attempts a ON a.task = t.task AND a.role = ${ROLE.final}
  WHERE t.parent = ? AND t.task >= ? AND t.task < ? ORDER BY t.task`

interface RolloutColumns {
  readonly id: string
  readonly rollout: number | null
  readonly info: unknown
  readonly status: OutcomeStatus | null
  readonly code: string | null
  readonly usage: string | null
  readonly runUs: number | null
  readonly session: number | null
  readonly grade: unknown
  readonly reward: number | null
  readonly success: number | null
}

const COLUMNS: Columns<RolloutColumns> = {
  id: isText,
  rollout: orNull(isWhole),
  info: isAnything,
  status: orNull(isStatus),
  code: orNull(isText),
  usage: orNull(isText),
  runUs: orNull(isNumber),
  session: orNull(isWhole),
  grade: isAnything,
  reward: orNull(isNumber),
  success: orNull(isWhole),
}

/** `withMetadata`: also read the metadata of the task, which may be in a blob. */
export function rolloutOf(row: unknown, blobs: BlobReader, withMetadata: boolean): Outcome {
  const { id, rollout, info, status, code, usage, runUs, session, ...graded } = checkedRow(row, COLUMNS, 'a rollout')
  const metadata = withMetadata ? metadataOf(blobs.read(info)) : undefined
  return {
    taskId: taskOfRollout(id, rollout),
    status: status ?? 'not-run',
    ...(code !== null && { code: currentCode(code) }),
    ...(status === 'success' && gradeIn(graded, blobs)),
    usage: usageOf(usage),
    ...(runUs !== null && { runMs: runUs / 1000 }),
    ...(session !== null && { session }),
    ...(metadata && { metadata }),
  }
}

/** The grade from a grader or, if there is none, from the environment. */
function gradeIn(
  { grade, reward, success }: Pick<RolloutColumns, 'grade' | 'reward' | 'success'>,
  blobs: BlobReader,
): Pick<Outcome, 'grade'> {
  if (grade === null)
    return reward === null && success === null
      ? {}
      : { grade: { reward, success: success === null ? null : success === 1 } }
  return { grade: gradeOf(blobs.read(grade)) }
}

function metadataOf(info: unknown): Record<string, unknown> | undefined {
  const metadata = isFields(info) ? info.metadata : undefined
  return isFields(metadata) ? metadata : undefined
}
