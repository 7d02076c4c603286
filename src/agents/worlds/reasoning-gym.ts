import { defineEnvironment, type Environment, type EnvironmentContext } from '../environment.ts'
import { makeReady, openEpisode } from './open-episode.ts'
import type { PythonEpisode } from './python-episode.ts'
import { fromPython, toPython } from './python-json.ts'
import { limitOf, PYTHON_RULES, type PythonWorldOptions, runtimeOf } from './python-options.ts'
import { worldError } from './world-errors.ts'
import { COUNT, checkOptions, OBJECT, type Rule, shown, TEXT, WHOLE } from './world-options.ts'
import { seedOf } from './world-seed.ts'

export interface ReasoningGymOptions extends PythonWorldOptions {
  readonly kind: 'reasoning-gym'
  /** The data set of tasks that do not name one: `chain_sum`. */
  readonly id?: string
}

/** The input of a task: one entry of a data set. */
export interface ReasoningGymTask {
  /** Default: the `id` of the world. */
  readonly dataset?: string
  /** Additional configuration of the data set: `{ min_terms: 4 }`. */
  readonly config?: Readonly<Record<string, unknown>>
  readonly size?: number
  /** Default: derived from the seed of the run and the task. */
  readonly seed?: number
  /** The index of the entry. Default 0. */
  readonly index?: number
  /** The question, for readers of the task. The agent gets the question that the world generates, which must be the same. */
  readonly instruction?: string
  readonly [key: string]: unknown
}

const RULES = { ...PYTHON_RULES, id: TEXT }
const TASK_RULES: Readonly<Record<string, Rule>> = {
  dataset: TEXT,
  config: OBJECT,
  size: COUNT,
  seed: WHOLE,
  index: WHOLE,
  instruction: TEXT,
}

interface StepAnswer {
  readonly reward: number
  readonly success: boolean
}

/** Episodes of one step: the question is the observation, and the answer is scored. The solution never leaves Python. */
export function reasoningGymWorld(options: ReasoningGymOptions): Environment<ReasoningGymTask, string, string> {
  checkOptions('pythonWorld', options, RULES, ['kind'])
  const { id, name = id ?? 'reasoning-gym' } = options
  const runtime = runtimeOf('reasoning-gym', options)
  const limitMs = limitOf(options)
  const environment = defineEnvironment({
    name,
    setup: () => makeReady(runtime),
    reset: async ({ input }: { input: ReasoningGymTask }, ctx) => {
      const body = toPython(entryOf(input, id, ctx, name))
      const { python, first } = await openEpisode(runtime, name, limitMs, body, ctx.log)
      const { observation } = fromPython(first) as { readonly observation: string }
      if (input?.instruction === undefined || input.instruction === observation)
        return { state: python as PythonEpisode, observation }
      python.close()
      throw worldError(
        'WORLD_FAILED',
        `entry ${input.index} of '${input.dataset ?? id}' differs from \`instruction\` of the task; the task was made by another version of reasoning-gym or with another seed, size or config`,
      )
    },
    step: async (python, action: string) => {
      if (typeof action !== 'string')
        throw worldError('ACTION_INVALID', `an answer to '${name}' must be a text, it is ${shown(action)}`)
      const { reward, success } = fromPython(await python.step(action)) as StepAnswer
      return { observation: action, reward, done: true, success }
    },
    close: (python) => python.close(),
  })
  return environment as unknown as Environment<ReasoningGymTask, string, string>
}

function entryOf(input: ReasoningGymTask | undefined, id: string | undefined, ctx: EnvironmentContext, name: string) {
  const task: ReasoningGymTask = input ?? {}
  for (const [key, [test, must]] of Object.entries(TASK_RULES)) {
    if (task[key] === undefined || test(task[key])) continue
    throw worldError('WORLD_FAILED', `\`${key}\` of a task in '${name}' must be ${must}, it is ${shown(task[key])}`)
  }
  const { dataset = id, config = {}, size, seed = seedOf(ctx), index = 0 } = task
  if (dataset === undefined)
    throw worldError(
      'WORLD_FAILED',
      `a task in '${name}' has no \`dataset\`, and the world has no \`id\`; set one of them`,
    )
  return { dataset, config: { ...config, seed, ...(size !== undefined && { size }) }, index }
}
