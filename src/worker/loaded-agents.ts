import type { RunnableDefinition } from '../agent.ts'
import type { TaskItem } from '../protocol/messages.ts'
import { outsideTasks } from './script-guard.ts'

/** An agent in this worker. Tasks wait in `waiting` while its code loads or its `setup` runs. */
export interface LoadedAgent {
  definition: RunnableDefinition | undefined
  params: unknown
  state: unknown
  setUp: boolean
  settingUp: boolean
  readonly waiting: TaskItem[]
}

interface Hooks {
  /** These can be started now: they were the first to come. */
  ready(items: readonly TaskItem[]): void
  /** The agent's `setup` has failed; these waited for it. */
  failed(items: readonly TaskItem[], definition: RunnableDefinition, error: unknown): void
}

/** The agents of this worker, and the tasks that wait for their code or their `setup`. */
export class LoadedAgents {
  readonly #byKey = new Map<number, LoadedAgent>()
  readonly #leaving: AbortSignal
  readonly #hooks: Hooks

  constructor(leaving: AbortSignal, hooks: Hooks) {
    this.#leaving = leaving
    this.#hooks = hooks
  }

  keys(): Iterable<number> {
    return this.#byKey.keys()
  }

  /** Large params travel slowly: tasks may name an agent before it is here. */
  get(key: number): LoadedAgent {
    let agent = this.#byKey.get(key)
    if (agent === undefined) {
      agent = {
        definition: undefined,
        params: undefined,
        state: undefined,
        setUp: false,
        settingUp: false,
        waiting: [],
      }
      this.#byKey.set(key, agent)
    }
    return agent
  }

  /** The agent's code is there: start what waited for it. */
  ready(agent: LoadedAgent): void {
    this.#hooks.ready(agent.waiting.splice(0))
  }

  /** A task comes before its agent's code is loaded, or before its `setup` has run. */
  wait(agent: LoadedAgent, item: TaskItem): void {
    agent.waiting.push(item)
    if (agent.definition !== undefined && !agent.settingUp) void this.#setUp(agent, agent.definition)
  }

  /** Takes all tasks that wait. */
  takeWaiting(): TaskItem[] {
    return [...this.#byKey.values()].flatMap(({ waiting }) => waiting.splice(0))
  }

  /** True: it waited, and does not any more. */
  remove(lease: number): boolean {
    for (const { waiting } of this.#byKey.values()) {
      const at = waiting.findIndex((item) => item[0] === lease)
      if (at < 0) continue
      waiting.splice(at, 1)
      return true
    }
    return false
  }

  async #setUp(agent: LoadedAgent, definition: RunnableDefinition): Promise<void> {
    agent.settingUp = true
    try {
      agent.state = await outsideTasks.run('setup', () => definition.setup!(agent.params, { signal: this.#leaving }))
      agent.setUp = true
    } catch (error) {
      // Not remembered: the next task tries again, so that a passing fault does not turn this worker into a black hole.
      this.#hooks.failed(agent.waiting.splice(0), definition, error)
    }
    agent.settingUp = false
    this.ready(agent)
  }
}
