import type { TaskGrade } from '../grade/grade.ts'
import type { Ending, Episode, Truncation } from '../trajectory/episode.ts'
import type { BlobReader } from './blobs.ts'
import { isFields, isNumber, isText } from './stored-shapes.ts'

const TRUNCATED = 'truncated: '
const TRUNCATIONS: Readonly<Record<Truncation, true>> = {
  maxSteps: true,
  budget: true,
  context: true,
  timeout: true,
  environment: true,
}

/** The text for the column `ending`. */
export const endingText = (ending: Ending): string =>
  ending.kind === 'truncated' ? TRUNCATED + ending.by : ending.kind

export const isEnding = (value: unknown): boolean => isText(value) && readEnding(value as string) !== undefined

function readEnding(text: string): Ending | undefined {
  if (text === 'terminated' || text === 'unknown') return { kind: text }
  const by = text.startsWith(TRUNCATED) ? text.slice(TRUNCATED.length) : ''
  return Object.hasOwn(TRUNCATIONS, by) ? { kind: 'truncated', by: by as Truncation } : undefined
}

interface EpisodeRow {
  readonly ending: string | null
  readonly reward: number | null
  readonly success: number | null
  /** Null if it equals the answer. */
  readonly finalObservation: unknown
  readonly answer: unknown
}

export function episodeOf(
  { ending, reward, success, finalObservation, answer }: EpisodeRow,
  blobs: BlobReader,
): Episode {
  const last = finalObservation ?? answer
  return {
    ending: readEnding(ending!)!,
    reward,
    success: success === null ? null : success === 1,
    ...(last !== null && { finalObservation: blobs.read(last) }),
  }
}

/** Returns a stored grade. Throws if the value is not a grade. */
export function gradeOf(value: unknown): TaskGrade {
  if (!isFields(value)) throw new Error('a grade is not an object')
  const { reward, success, grader } = value
  if (reward !== null && !isNumber(reward)) throw new Error('`reward` of a grade is not a number')
  if (success !== null && typeof success !== 'boolean') throw new Error('`success` of a grade is not a boolean')
  if (!isFields(grader) || !isText(grader.name)) throw new Error('a grade has no `grader.name`')
  return value as unknown as TaskGrade
}
