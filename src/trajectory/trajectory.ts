import { ManyworldsError } from '../errors.ts'
import type { TaskGrade } from '../grade/grade.ts'
import type { Branch } from './branches.ts'
import type { Ending } from './episode.ts'
import { type Json, NotLossless, toLossless } from './lossless-json.ts'
import { fromLossless } from './read-lossless.ts'
import { type SeedTrajectory, seedShape } from './seed-shape.ts'
import { wrongShapes } from './shapes.ts'
import type { Step } from './step.ts'
import type { Usage } from './usage.ts'

export const TRAJECTORY_SCHEMA = 2

export type Split = 'train' | 'validation' | 'test'

/** How a trajectory ended: its episode, or an agent without one, came to its end; or it failed, or was cancelled. */
export type TrajectoryEnding = Ending | { readonly kind: 'failed' | 'cancelled'; readonly error: TrajectoryError }

/** `error` of a response, as plain data. */
export interface TrajectoryError {
  readonly code: string
  readonly name: string
  readonly message: string
  readonly stack?: string
  readonly cause?: unknown
}

/** What a trajectory is made of. */
export interface TrajectoryParts {
  /** The id of its response: that of the task, with `@2`, `@3`, … for further rollouts. */
  readonly id: string
  /** The id of the run; null: not known. */
  readonly run: string | null
  /** The id of the task. */
  readonly task: string
  /** The name of its agent. */
  readonly agent: string
  readonly split: Split | null
  /** Those that it is compared with in training; `size` is null where it is not known. */
  readonly group: { readonly id: string; readonly size: number | null } | null
  /** How often a training came to this task before. */
  readonly visit: number
  /** From 1. */
  readonly rollout: number
  readonly attempt: number
  /** Of the run; null: not known. */
  readonly seed: number | string | null
  /** By number; the first is the task's own, with the number 0. */
  readonly branches: readonly Branch[]
  readonly steps: readonly Step[]
  /** What the task was given, and what it answered; left out where they are not known, or there is no answer. */
  readonly input?: unknown
  readonly answer?: unknown
  /** What the environment showed after the last action. */
  readonly finalObservation?: unknown
  readonly ending: TrajectoryEnding
  /** What the environment said of the episode; null: there was none. */
  readonly episode: { readonly reward: number | null; readonly success: boolean | null } | null
  /** How good it is; null: nobody graded it. A reward of null is no zero: nobody can tell. */
  readonly grade: TaskGrade | null
  /** Of what its own agent did and saw, without sub-tasks; null: not comparable. */
  readonly digest: string | null
  readonly usage: Usage
  /** How long the attempt ran. */
  readonly ms: number
  /** `metadata` of the task. */
  readonly meta: Readonly<Record<string, unknown>>
}

/** A trajectory as JSON; see docs/trajectories.md. */
export type TrajectoryJson = { readonly schema: typeof TRAJECTORY_SCHEMA } & { readonly [key: string]: Json }

/**
 * All of what a task did, whatever kind of agent it has. It holds plain data; what can be made of it are functions:
 * `tokenRows`, `rewardsOnTokens`, `messagesOf`, `checkTrajectory`.
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

  /** Plain JSON that brings everything back, so `JSON.stringify(trajectory)` loses nothing. */
  toJSON(): TrajectoryJson {
    try {
      const fields = Object.entries(this).map(([key, value]): [string, Json] => [key, written(key, value)])
      return Object.fromEntries(fields) as TrajectoryJson
    } catch (error) {
      if (!(error instanceof NotLossless)) throw error
      throw invalid(`the trajectory of task '${this.id}' cannot be written as JSON: ${error.message}`)
    }
  }

  /** Throws `TRAJECTORY_INVALID` if it is not what `toJSON` gives. Whether it makes sense says `checkTrajectory`. */
  static fromJSON(json: unknown): Trajectory {
    if (typeof json !== 'object' || json === null || Array.isArray(json))
      throw invalid('a trajectory is an object, as Trajectory.toJSON() gives it; parse its text with JSON.parse first')
    const { schema } = json as { schema?: unknown }
    if (schema !== TRAJECTORY_SCHEMA)
      throw invalid(
        `a trajectory with schema ${JSON.stringify(schema)}; this version of manyworlds reads schema ${TRAJECTORY_SCHEMA}`,
      )
    const parts = fieldsOf(json)
    const [wrong] = wrongShapes(parts)
    if (wrong !== undefined) throw invalid(`a malformed trajectory: ${wrong}`)
    return new Trajectory(parts as TrajectoryParts)
  }

  /** The fields of the Python recipe, in camelCase. `executionTime` is in seconds. */
  toSeedShape(): SeedTrajectory {
    return seedShape(this)
  }
}

/** Steps one by one: most are plain data, and are not copied then. */
const written = (key: string, value: unknown): Json =>
  key === 'steps' ? (value as readonly Step[]).map(toLossless) : toLossless(value)

function fieldsOf(json: object): unknown {
  try {
    const { schema: _, ...fields } = fromLossless(json) as Record<string, unknown>
    return fields
  } catch (error) {
    if (!(error instanceof NotLossless)) throw error
    throw invalid(`a malformed trajectory: ${error.message}`)
  }
}

const invalid = (message: string) => new ManyworldsError('TRAJECTORY_INVALID', message)
