import type { OutcomeStatus } from '../grade/blame.ts'
import { type Outcome, taskOfRollout } from '../grade/outcome.ts'
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

/** All tasks of a run, with what came of them as far as evaluation is concerned. */
export const ROLLOUTS = `SELECT t.id, t.rollout, t.info, a.status, a.error_code AS code, a.usage, a.run_us AS runUs,
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
  grade: isAnything,
  reward: orNull(isNumber),
  success: orNull(isWhole),
}

/** `withMetadata`: also what the task says of itself, which may have to be read from a blob. */
export function rolloutOf(row: unknown, blobs: BlobReader, withMetadata: boolean): Outcome {
  const { id, rollout, info, status, code, usage, runUs, ...graded } = checkedRow(row, COLUMNS, 'a rollout')
  const metadata = withMetadata ? metadataOf(blobs.read(info)) : undefined
  return {
    taskId: taskOfRollout(id, rollout),
    status: status ?? 'not-run',
    ...(code !== null && { code }),
    ...(status === 'success' && gradeIn(graded, blobs)),
    usage: usageOf(usage),
    ...(runUs !== null && { runMs: runUs / 1000 }),
    ...(metadata && { metadata }),
  }
}

/** What a grader said or, without one, the environment. */
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
