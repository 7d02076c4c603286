import type { RunnableDefinition, SetupContext } from '../agent.ts'
import type { TaskItem } from '../protocol/messages.ts'
import { outsideTasks } from './script-guard.ts'
import type { SetupBlobs } from './setup-blobs.ts'

/** An agent in this worker. Tasks wait in `waiting` while its code loads or its `setup` runs. */
export interface LoadedAgent {
  definition: RunnableDefinition | undefined
  params: unknown
  state: unknown
  setUp: boolean
  /** The blobs that its `setup` asks for, while it runs. */
  setup: SetupBlobs | undefined
  readonly waiting: TaskItem[]
}

interface Hooks {
  /** These tasks can start now; they go first. */
  ready(items: readonly TaskItem[]): void
  /** The agent's `setup` has failed; these tasks waited for it. */
  failed(items: readonly TaskItem[], definition: RunnableDefinition, error: unknown): void
  /** So many agents are being imported or set up now. */
  preparing(agents: number): void
  /** A `setup` begins; these tasks wait for it. */
  blobsFor(waiting: readonly TaskItem[]): SetupBlobs
}

/** The agents of this worker, and the tasks that wait for their code or their `setup`. */
export class LoadedAgents {
  readonly #byKey = new Map<number, LoadedAgent>()
  readonly #leaving: AbortSignal
  readonly #hooks: Hooks
  #preparing = 0

  constructor(leaving: AbortSignal, hooks: Hooks) {
    this.#leaving = leaving
    this.#hooks = hooks
  }

  keys(): Iterable<number> {
    return this.#byKey.keys()
  }

  /** Tasks may name an agent before its message is here: large params take longer. */
  get(key: number): LoadedAgent {
    let agent = this.#byKey.get(key)
    if (agent === undefined) {
      agent = {
        definition: undefined,
        params: undefined,
        state: undefined,
        setUp: false,
        setup: undefined,
        waiting: [],
      }
      this.#byKey.set(key, agent)
    }
    return agent
  }

  /** An import or a `setup` begins (1) or has ended (-1). */
  prepares(change: 1 | -1): void {
    this.#preparing += change
    this.#hooks.preparing(this.#preparing)
  }

  /** The agent's code is loaded: starts the tasks that waited for it. */
  ready(agent: LoadedAgent): void {
    this.#hooks.ready(agent.waiting.splice(0))
  }

  /** Holds a task until its agent's code is loaded and its `setup` has run. */
  wait(agent: LoadedAgent, item: TaskItem): void {
    agent.waiting.push(item)
    if (agent.setup) agent.setup.changed()
    else if (agent.definition !== undefined) void this.#setUp(agent, agent.definition)
  }

  /** Takes all tasks that wait, except those to be kept. */
  takeWaiting(isKept: (item: TaskItem) => boolean): TaskItem[] {
    return [...this.#byKey.values()].flatMap(({ waiting, setup }) => {
      const items = waiting.splice(0)
      waiting.push(...items.filter(isKept))
      setup?.changed()
      return items
    })
  }

  /** Removes a task that waits. False: it does not wait here. */
  remove(lease: number): boolean {
    for (const { waiting, setup } of this.#byKey.values()) {
      const at = waiting.findIndex((item) => item[0] === lease)
      if (at < 0) continue
      waiting.splice(at, 1)
      setup?.changed()
      return true
    }
    return false
  }

  async #setUp(agent: LoadedAgent, definition: RunnableDefinition): Promise<void> {
    const setup = this.#hooks.blobsFor(agent.waiting)
    agent.setup = setup
    this.prepares(1)
    const ctx: SetupContext = { signal: this.#leaving, blob: (sha256) => setup.get(sha256) }
    try {
      agent.state = await outsideTasks.run('setup', () => definition.setup!(agent.params, ctx))
      agent.setUp = true
    } catch (error) {
      // Not remembered: the next task tries again, so that a temporary failure does not make this worker fail all tasks.
      this.#hooks.failed(agent.waiting.splice(0), definition, error)
    }
    this.prepares(-1)
    setup.end()
    agent.setup = undefined
    this.ready(agent)
  }
}
