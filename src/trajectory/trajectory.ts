import { ManyworldsError } from '../errors.ts'
import type { TaskGrade } from '../grade/grade.ts'
import { currentCode } from '../renamed-codes.ts'
import type { Branch } from './branches.ts'
import type { Ending } from './episode.ts'
import { type Json, NotLossless, toLossless } from './lossless-json.ts'
import { fromLossless } from './read-lossless.ts'
import { type SeedTrajectory, seedShape } from './seed-shape.ts'
import { wrongShapes } from './shapes.ts'
import type { Step } from './step.ts'
import type { Usage } from './usage.ts'

export const TRAJECTORY_SCHEMA = 2

/** What a task is used for in training. */
export type Split = 'train' | 'validation' | 'test'

/** How a trajectory ended: its episode or its agent ended, failed, or was cancelled. */
export type TrajectoryEnding = Ending | { readonly kind: 'failed' | 'cancelled'; readonly error: TrajectoryError }

/** The `error` of a response, as plain data. */
export interface TrajectoryError {
  readonly code: string
  readonly name: string
  readonly message: string
  readonly stack?: string
  readonly cause?: unknown
}

/** The fields of a trajectory. */
export interface TrajectoryParts {
  /** The id of the response: that of the task, with `@2`, `@3`, … for further rollouts. */
  readonly id: string
  /** The id of the run; null: unknown. */
  readonly run: string | null
  /** The id of the task. */
  readonly task: string
  /** The name of the agent. */
  readonly agent: string
  readonly split: Split | null
  /** The group that it is compared within in training. `size` is null if unknown. */
  readonly group: { readonly id: string; readonly size: number | null } | null
  /** How often a training used this task before. */
  readonly visit: number
  /** The number of the rollout, from 1. */
  readonly rollout: number
  readonly attempt: number
  /** The seed of the run; null: unknown. */
  readonly seed: number | string | null
  /** Sorted by number. The first is branch 0, that of the task's agent. */
  readonly branches: readonly Branch[]
  readonly steps: readonly Step[]
  /** The input and the answer of the task. Left out if unknown, or if there is no answer. */
  readonly input?: unknown
  readonly answer?: unknown
  /** The observation after the last action. */
  readonly finalObservation?: unknown
  readonly ending: TrajectoryEnding
  /** The result according to the environment; null: there was no episode. */
  readonly episode: { readonly reward: number | null; readonly success: boolean | null } | null
  /** The grade; null: not graded. A reward of null is not zero: it is unknown. */
  readonly grade: TaskGrade | null
  /** The digest of what the task's agent did and saw, without sub-tasks; null: not comparable. */
  readonly digest: string | null
  readonly usage: Usage
  /** How long the attempt ran, in milliseconds. */
  readonly ms: number
  /** `metadata` of the task. */
  readonly meta: Readonly<Record<string, unknown>>
}

/** A trajectory as JSON; see docs/trajectories.md. */
export type TrajectoryJson = { readonly schema: typeof TRAJECTORY_SCHEMA } & { readonly [key: string]: Json }

/**
 * Everything that a task did, for all kinds of agents. It is plain data; use functions to process it: `tokenRows`,
 * `rewardsOnTokens`, `messagesOf`, `checkTrajectory`.
 */
export class Trajectory implements TrajectoryParts {
  readonly schema = TRAJECTORY_SCHEMA
  declare readonly id: string
  declare readonly run: string | null
  declare readonly task: string
  declare readonly agent: string
  declare readonly split: Split | null
  declare readonly group: TrajectoryParts['group']
  declare readonly visit: number
  declare readonly rollout: number
  declare readonly attempt: number
  declare readonly seed: TrajectoryParts['seed']
  declare readonly branches: readonly Branch[]
  declare readonly steps: readonly Step[]
  declare readonly input?: unknown
  declare readonly answer?: unknown
  declare readonly finalObservation?: unknown
  declare readonly ending: TrajectoryEnding
  declare readonly episode: TrajectoryParts['episode']
  declare readonly grade: TaskGrade | null
  declare readonly digest: string | null
  declare readonly usage: Usage
  declare readonly ms: number
  declare readonly meta: TrajectoryParts['meta']

  constructor(parts: TrajectoryParts) {
    Object.assign(this, parts)
  }

  /** Returns plain JSON that restores everything, so `JSON.stringify(trajectory)` is lossless. */
  toJSON(): TrajectoryJson {
    try {
      const fields = Object.entries(this).map(([key, value]): [string, Json] => [key, written(key, value)])
      return Object.fromEntries(fields) as TrajectoryJson
    } catch (error) {
      if (!(error instanceof NotLossless)) throw error
      throw invalid(`cannot write the trajectory of task '${this.id}' as JSON: ${error.message}`)
    }
  }

  /** Throws `TRAJECTORY_INVALID` if the value is not the output of `toJSON`. Use `checkTrajectory` to check its content. */
  static fromJSON(json: unknown): Trajectory {
    if (typeof json !== 'object' || json === null || Array.isArray(json))
      throw invalid(
        'a trajectory must be an object from Trajectory.toJSON(); if it is a text, parse it with JSON.parse first',
      )
    const { schema } = json as { schema?: unknown }
    if (schema !== TRAJECTORY_SCHEMA)
      throw invalid(
        `unsupported trajectory schema ${JSON.stringify(schema)}; this version of manyworlds reads schema ${TRAJECTORY_SCHEMA}`,
      )
    const parts = fieldsOf(json)
    const [wrong] = wrongShapes(parts)
    if (wrong !== undefined) throw invalid(`malformed trajectory: ${wrong}`)
    return new Trajectory(withCurrentCode(parts as TrajectoryParts))
  }

  /** Returns the fields of AWorld's Python recipe, in camelCase. `executionTime` is in seconds. */
  toSeedShape(): SeedTrajectory {
    return seedShape(this)
  }
}

function withCurrentCode(parts: TrajectoryParts): TrajectoryParts {
  const { ending } = parts
  if (!('error' in ending)) return parts
  return { ...parts, ending: { ...ending, error: { ...ending.error, code: currentCode(ending.error.code) } } }
}

/** Converts steps one by one: most are plain data, which needs no copy. */
const written = (key: string, value: unknown): Json =>
  key === 'steps' ? (value as readonly Step[]).map(toLossless) : toLossless(value)

function fieldsOf(json: object): unknown {
  try {
    const { schema: _, ...fields } = fromLossless(json) as Record<string, unknown>
    return fields
  } catch (error) {
    if (!(error instanceof NotLossless)) throw error
    throw invalid(`malformed trajectory: ${error.message}`)
  }
}

const invalid = (message: string) => new ManyworldsError('TRAJECTORY_INVALID', message)
