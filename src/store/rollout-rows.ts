import { hash } from 'node:crypto'
import type { OutcomeStatus } from '../grade/blame.ts'
import { pendingGrade } from '../grade/grading-task.ts'
import { type Outcome, taskOfRollout } from '../grade/outcome.ts'
import { currentCode } from '../renamed-codes.ts'
import { canonical } from '../trajectory/canonical.ts'
import type { BlobReader } from './blobs.ts'
import { GRADER_OF_TASK } from './rows.ts'
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
export const ROLLOUTS = `SELECT t.task, t.id, t.rollout, t.input, t.info, a.status, a.error_code AS code, a.usage, a.run_us AS runUs, a.epoch AS session,
  (SELECT n.record FROM _grades n WHERE n.task = t.task ORDER BY n.grade DESC LIMIT 1) AS grade,
  ${GRADER_OF_TASK} AS grader,
  a.episode_reward AS reward, a.episode_success AS success
  FROM _tasks t LEFT JOIN _attempts a ON a.task = t.task AND a.role = ${ROLE.final}
  WHERE t.parent = ?1 AND t.task >= ?2 AND t.task < ?3 ORDER BY t.task`

interface RolloutColumns {
  readonly id: string
  readonly rollout: number | null
  readonly input: unknown
  readonly info: unknown
  readonly status: OutcomeStatus | null
  readonly code: string | null
  readonly usage: string | null
  readonly runUs: number | null
  readonly session: number | null
  readonly grade: unknown
  readonly grader: string | null
  readonly reward: number | null
  readonly success: number | null
}

const COLUMNS: Columns<RolloutColumns> = {
  id: isText,
  rollout: orNull(isWhole),
  input: isAnything,
  info: isAnything,
  status: orNull(isStatus),
  code: orNull(isText),
  usage: orNull(isText),
  runUs: orNull(isNumber),
  session: orNull(isWhole),
  grade: isAnything,
  grader: orNull(isText),
  reward: orNull(isNumber),
  success: orNull(isWhole),
}

/** What to read besides: parts of the task, which may be in blobs. */
export interface RolloutOptions {
  readonly metadata?: boolean
  /** Identify what the task asks, for a comparison. */
  readonly content?: boolean
}

export function rolloutOf(row: unknown, blobs: BlobReader, wanted: RolloutOptions): Outcome {
  const { id, rollout, input, info, status, code, usage, runUs, session, ...graded } = checkedRow(
    row,
    COLUMNS,
    'a rollout',
  )
  const metadata = wanted.metadata ? metadataOf(blobs.read(info)) : undefined
  return {
    taskId: taskOfRollout(id, rollout),
    status: status ?? 'not-run',
    ...(code !== null && { code: currentCode(code) }),
    ...gradeIn(graded, status, blobs),
    usage: usageOf(usage),
    ...(runUs !== null && { runMs: runUs / 1000 }),
    ...(session !== null && { session }),
    ...(metadata && { metadata }),
    ...(wanted.content && { content: contentOf(input, info, blobs) }),
  }
}

/** Input and ground truth. Not the agent and its params: other prompts are what runs are compared for. */
function contentOf(input: unknown, info: unknown, blobs: BlobReader): string {
  const facts = blobs.read(info)
  const truth = isFields(facts) ? canonical(facts.groundTruth) : ''
  // A large input is not read: its blob has a hash.
  const asked = typeof input === 'number' ? blobs.hashOf(input) : canonical(blobs.read(input))
  return hash('sha256', `${asked}\0${truth}`).slice(0, CONTENT_DIGITS)
}

const CONTENT_DIGITS = 16

/** The grade from a grader, or that it is pending; without a grader, the result of the environment. */
function gradeIn(
  { grade, grader, reward, success }: Pick<RolloutColumns, 'grade' | 'grader' | 'reward' | 'success'>,
  status: OutcomeStatus | null,
  blobs: BlobReader,
): Pick<Outcome, 'grade'> {
  if (grade !== null) return { grade: gradeOf(blobs.read(grade)) }
  if (status !== 'success') return {}
  if (grader !== null) return { grade: pendingGrade(grader) }
  if (reward === null && success === null) return {}
  return { grade: { reward, success: success === null ? null : success === 1, grader: ENVIRONMENT } }
}

const ENVIRONMENT = { name: 'the environment' }

function metadataOf(info: unknown): Record<string, unknown> | undefined {
  const metadata = isFields(info) ? info.metadata : undefined
  return isFields(metadata) ? metadata : undefined
}
