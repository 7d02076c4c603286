import { defineEnvironment, type Environment } from '../environment.ts'
import { makeReady, openEpisode } from './open-episode.ts'
import type { PythonEpisode } from './python-episode.ts'
import { fromPython, toPython } from './python-json.ts'
import { limitOf, PYTHON_RULES, type PythonWorldOptions, runtimeOf } from './python-options.ts'
import { COUNT, checkOptions, invalid, OBJECT, TEXT } from './world-options.ts'
import { taskSeed } from './world-seed.ts'

export interface GymnasiumOptions extends PythonWorldOptions {
  readonly kind: 'gymnasium'
  /** For example `CartPole-v1`. For a world of another package, include its module: `ale_py:ALE/Pong-v5`. */
  readonly id: string
  /** Additional arguments of `gymnasium.make`. */
  readonly kwargs?: Readonly<Record<string, unknown>>
  /** The world truncates an episode after this many steps. Default: as registered with Gymnasium. */
  readonly maxEpisodeSteps?: number
}

/** The input of a task in a Gymnasium world. */
export interface GymnasiumTask {
  /** The seed for `reset`. Default: derived from the seed of the run and the task. */
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
  /** The version of Gymnasium. */
  readonly version: string
  readonly observationSpace: WorldSpace
  readonly actionSpace: WorldSpace
  readonly maxEpisodeSteps: number | null
  readonly rewardThreshold: number | null
}

export interface GymnasiumWorld<Observation, Action>
  extends Environment<GymnasiumTask | undefined, Observation, Action> {
  /** Creates the world once, in this process, and describes its observations and actions. */
  describe(): Promise<WorldDescription>
}

interface Episode {
  readonly python: PythonEpisode
  /** The actions, if they can be listed. */
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
/** Longer lists of actions are useless, and they would be recorded with each step. */
const MOST_CANDIDATES = 1000

export function gymnasiumWorld<Observation, Action>(options: GymnasiumOptions): GymnasiumWorld<Observation, Action> {
  checkOptions('pythonWorld', options, RULES, ['kind', 'id'])
  const { id, kwargs = {}, maxEpisodeSteps, name = id } = options
  checkPlain(kwargs)
  const runtime = runtimeOf('gymnasium', options)
  const limitMs = limitOf(options)
  const make = { id, kwargs, maxEpisodeSteps }
  const environment = defineEnvironment({
    name,
    setup: () => makeReady(runtime),
    reset: async ({ input }: { input: GymnasiumTask | undefined }, ctx) => {
      const body = toPython({ ...make, seed: taskSeed(input?.seed, ctx, name), options: input?.options ?? null })
      const { python, first } = await openEpisode(runtime, name, limitMs, body, ctx.log)
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
        // If the last step reaches both the goal and the step limit, the episode has terminated.
        truncated: truncated && !terminated,
        ...(success !== undefined && { success }),
        ...(candidates && { candidates }),
      }
    },
    close: ({ python }) => python.close(),
  })
  const describe = async () => {
    const { worldServer } = await import('./world-server.ts')
    return worldServer(runtime).ask('describe', toPython(make), `describe of '${name}'`, limitMs)
  }
  return Object.freeze({ ...environment, describe }) as unknown as GymnasiumWorld<Observation, Action>
}

function checkPlain(kwargs: Readonly<Record<string, unknown>>): void {
  try {
    toPython(kwargs)
  } catch (error) {
    throw invalid('pythonWorld', `cannot send \`kwargs\` to Python: ${(error as Error).message}; give plain data`)
  }
}

function numbers(n: number, start: number): readonly number[] | undefined {
  return n > MOST_CANDIDATES ? undefined : Array.from({ length: n }, (_, at) => start + at)
}
