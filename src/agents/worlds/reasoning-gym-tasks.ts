import type { Agent } from '../../agent.ts'
import type { TaskLike } from '../../task.ts'
import { toPython } from './python-json.ts'
import { PYTHON_RULES, type PythonWorldOptions, runtimeOf } from './python-options.ts'
import type { ReasoningGymTask } from './reasoning-gym.ts'
import { COUNT, checkOptions, OBJECT, TEXT, WHOLE } from './world-options.ts'

export interface ReasoningGymTasksOptions<Answer, Params, Name extends string>
  extends Pick<PythonWorldOptions, 'packages' | 'python'> {
  /** The agent of the tasks: a step agent in a reasoning-gym world. */
  readonly agent: Agent<ReasoningGymTask, Answer, Params, Name>
  readonly dataset: string
  readonly size: number
  readonly seed: number
  readonly config?: Readonly<Record<string, unknown>>
}

const RULES = {
  packages: PYTHON_RULES.packages,
  python: PYTHON_RULES.python,
  agent: OBJECT,
  dataset: TEXT,
  size: COUNT,
  seed: WHOLE,
  config: OBJECT,
}

interface EntryAnswer {
  readonly question: string
  readonly difficulty: Readonly<Record<string, unknown>> | null
}

/** How many questions to request at a time. */
const PAGE = 100
const ENTRIES_MS = 300_000

/**
 * Makes a task for each entry of a data set, with the question as `instruction` of its input. The tasks do not contain the
 * answers: the worker generates the entry again and scores the answer there.
 *
 * @example
 * const tasks = reasoningGymTasks({ agent: solver, dataset: 'chain_sum', size: 500, seed: 42 })
 * for await (const response of Runners.streamTask(tasks)) console.log(response.id, response.answer)
 */
export function reasoningGymTasks<Answer, Params, Name extends string>(
  options: ReasoningGymTasksOptions<Answer, Params, Name>,
): AsyncGenerator<TaskLike<Agent<ReasoningGymTask, Answer, Params, Name>>, undefined> {
  checkOptions('reasoningGymTasks', options, RULES, ['agent', 'dataset', 'size', 'seed'])
  return tasksOf(options)
}

async function* tasksOf<Answer, Params, Name extends string>(
  options: ReasoningGymTasksOptions<Answer, Params, Name>,
): AsyncGenerator<TaskLike<Agent<ReasoningGymTask, Answer, Params, Name>>, undefined> {
  const { agent, dataset, size, seed, config } = options
  const { worldServer } = await import('./world-server.ts')
  const server = worldServer(runtimeOf('reasoning-gym', options))
  server.enter()
  try {
    const made = { dataset, config: { ...config, size, seed } }
    for (let from = 0; from < size; from += PAGE) {
      const body = toPython({ ...made, from, to: Math.min(size, from + PAGE) })
      const asked = await server.ask('entries', body, `data set '${dataset}'`, ENTRIES_MS)
      for (const [at, { question, difficulty }] of (asked as EntryAnswer[]).entries()) {
        const index = from + at
        const input = { dataset, ...(config && { config }), size, seed, index, instruction: question }
        const metadata = { dataset, ...(difficulty && { difficulty }) }
        yield agent.task(input, { id: `${dataset}/${seed}/${index}`, metadata })
      }
    }
  } finally {
    server.leave()
  }
  return undefined
}
