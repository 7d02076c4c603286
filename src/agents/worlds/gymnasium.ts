import { defineEnvironment, type Environment } from '../environment.ts'
import { makeReady, openEpisode } from './open-episode.ts'
import type { PythonEpisode } from './python-episode.ts'
import { fromPython, toPython } from './python-json.ts'
import { limitOf, PYTHON_RULES, type PythonWorldOptions, placeOf } from './python-options.ts'
import { COUNT, checkOptions, invalid, OBJECT, TEXT } from './world-options.ts'
import { taskSeed } from './world-seed.ts'

export interface GymnasiumOptions extends PythonWorldOptions {
  readonly kind: 'gymnasium'
  /** `CartPole-v1`; of another package with its module: `ale_py:ALE/Pong-v5`. */
  readonly id: string
  /** What `gymnasium.make` is given besides. */
  readonly kwargs?: Readonly<Record<string, unknown>>
  /** After so many steps the world cuts an episode short. Default: what the world is registered with. */
  readonly maxEpisodeSteps?: number
}

/** The input of a task in a Gymnasium world. */
export interface GymnasiumTask {
  /** What `reset` is given. Default: one that follows from the seed of the run and the task. */
  readonly seed?: number
  /** The `options` of `reset`. */
  readonly options?: Readonly<Record<string, unknown>>
  readonly [key: string]: unknown
}

/** An observation or action space, as Gymnasium describes it. */
export interface WorldSpace {
  /** `Discrete`, `Box`, `MultiDiscrete`, `MultiBinary`, `Tuple`, `Dict`, `Text`, … */
  readonly type: string
  /** `Box(-2.0, 2.0, (1,), float32)` */
  readonly text: string
  readonly [key: string]: unknown
}

export interface WorldDescription {
  /** Of Gymnasium. */
  readonly version: string
  readonly observationSpace: WorldSpace
  readonly actionSpace: WorldSpace
  readonly maxEpisodeSteps: number | null
  readonly rewardThreshold: number | null
}

export interface GymnasiumWorld<Observation, Action>
  extends Environment<GymnasiumTask | undefined, Observation, Action> {
  /** Makes the world once, here, and says what it shows and takes. */
  describe(): Promise<WorldDescription>
}

interface Episode {
  readonly python: PythonEpisode
  /** The actions, if they can be counted. */
  readonly candidates: readonly number[] | undefined
}

interface FirstAnswer {
  readonly observation: unknown
  readonly actions: readonly [n: number, start: number] | null
}

interface StepAnswer {
  readonly observation: unknown
  readonly reward: number
  readonly terminated: boolean
  readonly truncated: boolean
  readonly success?: boolean
}

const RULES = { ...PYTHON_RULES, id: TEXT, kwargs: OBJECT, maxEpisodeSteps: COUNT }
/** Lists of more actions than this help nobody, and would be recorded with each step. */
const MOST_CANDIDATES = 1000

export function gymnasiumWorld<Observation, Action>(options: GymnasiumOptions): GymnasiumWorld<Observation, Action> {
  checkOptions('pythonWorld', options, RULES, ['kind', 'id'])
  const { id, kwargs = {}, maxEpisodeSteps, name = id } = options
  checkPlain(kwargs)
  const place = placeOf('gymnasium', options)
  const limitMs = limitOf(options)
  const make = { id, kwargs, maxEpisodeSteps }
  const environment = defineEnvironment({
    name,
    setup: () => makeReady(place),
    reset: async ({ input }: { input: GymnasiumTask | undefined }, ctx) => {
      const body = toPython({ ...make, seed: taskSeed(input?.seed, ctx, name), options: input?.options ?? null })
      const { python, first } = await openEpisode(place, name, limitMs, body, ctx.log)
      const { observation, actions } = fromPython(first) as FirstAnswer
      const candidates = actions === null ? undefined : numbers(...actions)
      return { state: { python, candidates } as Episode, observation, ...(candidates && { candidates }) }
    },
    step: async ({ python, candidates }, action) => {
      const { observation, reward, terminated, truncated, success } = fromPython(
        await python.step(action),
      ) as StepAnswer
      return {
        observation,
        reward,
        done: terminated || truncated,
        // A world that ends at its limit by reaching its goal has come to an end.
        truncated: truncated && !terminated,
        ...(success !== undefined && { success }),
        ...(candidates && { candidates }),
      }
    },
    close: ({ python }) => python.close(),
  })
  const describe = async () => {
    const { worldServer } = await import('./world-server.ts')
    return worldServer(place).ask('describe', toPython(make), `describe of '${name}'`, limitMs)
  }
  return Object.freeze({ ...environment, describe }) as unknown as GymnasiumWorld<Observation, Action>
}

function checkPlain(kwargs: Readonly<Record<string, unknown>>): void {
  try {
    toPython(kwargs)
  } catch (error) {
    throw invalid('pythonWorld', `\`kwargs\` cannot be sent to Python: ${(error as Error).message}; give plain data`)
  }
}

function numbers(n: number, start: number): readonly number[] | undefined {
  return n > MOST_CANDIDATES ? undefined : Array.from({ length: n }, (_, at) => start + at)
}
