import type { WorkerExit } from '../engines/engine.ts'
import { ManyworldsError } from '../errors.ts'
import type { WorkerMessage } from '../protocol/messages.ts'
import type { AgentState, AgentTable } from './agents.ts'
import type { Fleet } from './fleet.ts'
import type { Run } from './run.ts'
import type { Shipping } from './shipping.ts'
import { crashError } from './suspects.ts'
import type { TaskEntry } from './task-entry.ts'
import type { WorkerHandle } from './worker-handle.ts'

/** How many workers may fail to load an agent that another worker has loaded, or crash while loading it, before the run fails. */
const LOAD_FAILURES = 3

interface Hooks {
  failRun(run: Run, error: Error): void
  /** A task asked for this sub-task, whose code cannot be loaded. */
  refuse(child: TaskEntry, error: Error): void
  notice(line: string): void
}

/**
 * Code that no worker can load is the caller's mistake and should be one clear error, not one per task. So the tasks of an
 * agent are held until a first worker has loaded it. If only sub-tasks need the code, their parent task gets the error.
 */
export class AgentLoading {
  readonly #agents: AgentTable
  readonly #fleet: Fleet
  /** Set if workers cannot see the driver's files. */
  readonly #shipping: Shipping | undefined
  readonly #hooks: Hooks

  constructor(agents: AgentTable, fleet: Fleet, shipping: Shipping | undefined, hooks: Hooks) {
    this.#agents = agents
    this.#fleet = fleet
    this.#shipping = shipping
    this.#hooks = hooks
  }

  hold(entry: TaskEntry): void {
    const known = entry.parent && entry.run.unloadable.get(entry.agent)
    if (known) return this.#hooks.refuse(entry, known)
    const { agent } = entry
    agent.held.push(entry)
    if (!entry.parent) entry.run.aside++
    const { refused } = agent
    if (refused) queueMicrotask(() => this.#failRunsOf(agent, refused))
    else this.#probe(agent)
  }

  get held(): number {
    let held = 0
    for (const agent of this.#agents) held += agent.held.length
    return held
  }

  heldOf(run: Run): TaskEntry[] {
    return [...this.#agents].flatMap((agent) => agent.held.filter((entry) => entry.run === run))
  }

  /** A worker is ready: let it load the agents that no worker has loaded yet. */
  onReady(): void {
    for (const agent of this.#agents) this.#probe(agent)
  }

  onLoaded(worker: WorkerHandle, key: number): void {
    const agent = this.#agents.byKey(key)
    if (agent === undefined || !worker.knows(agent)) return
    worker.loaded.add(key)
    if (agent.loaded) return
    agent.loaded = true
    agent.failures = 0
    for (const entry of takeHeld(agent))
      if (!entry.settled) (entry.parent ? entry.run.urgent : entry.run.ready).push(entry)
  }

  onFailed(worker: WorkerHandle, { agent: key, code, ...said }: Extract<WorkerMessage, { type: 'load-failed' }>): void {
    const agent = this.#agents.byKey(key)
    if (agent === undefined || !worker.knows(agent)) return
    const goesOn = code === 'RUNNERS_IN_WORKER'
    if (worker.loaded.has(key) && !goesOn) throw new RangeError('it has loaded this agent')
    if (agent.loaded && !goesOn && ++agent.failures < LOAD_FAILURES) return worker.end()
    const own = (text: string) => this.#shipping?.stackOf(text) ?? text
    const message = own(said.message)
    const stack = said.stack === undefined ? undefined : own(said.stack)
    // A worker on another machine may lack a package or a file that the others have.
    const where = this.#shipping
      ? ` (on ${worker.name.id}; packages of bundle.external must be installed on every machine)`
      : ''
    const error = new ManyworldsError(code, message + (code === 'AGENT_LOAD_FAILED' ? where : ''))
    // If the user's own code threw, its stack tells more than the message.
    if (code === 'AGENT_LOAD_FAILED' && stack !== undefined) error.cause = Object.assign(new Error(message), { stack })
    const also = [...worker.leases.values()].map(({ entry }) => entry).filter((entry) => entry.agent === agent)
    const failed = this.#failRunsOf(agent, error, also)
    if (goesOn) {
      // The script ran in the worker and may have taken the driver's work there: say so even if no run fails. Later runs are refused.
      if (failed === 0 && !agent.refused) this.#hooks.notice(`${message} [${code}]`)
      agent.loaded = false
      agent.refused = error
    }
    // A worker keeps the modules it has imported. The next run gets a new worker, which reads the corrected file.
    agent.probedBy = undefined
    worker.retire()
    this.#fleet.refresh(worker)
  }

  /** A worker is gone. If it was the first to load an agent, another worker has to try. */
  onClosed(worker: WorkerHandle, exit: WorkerExit): void {
    for (const agent of this.#agents) {
      if (agent.probedBy !== worker) continue
      agent.probedBy = undefined
      if (!worker.expected && !exit.placeLost && !agent.loaded && ++agent.failures >= LOAD_FAILURES)
        this.#giveUp(agent, exit)
      else this.#probe(agent)
    }
  }

  #probe(agent: AgentState): void {
    if (agent.held.length === 0 || agent.probedBy !== undefined) return
    if (this.#shipping && agent.place === undefined) {
      if (!agent.shipping) void this.#ship(agent)
      return
    }
    for (const worker of this.#fleet.workers) {
      if (worker.state !== 'ready') continue
      agent.probedBy = worker
      return worker.introduce(agent)
    }
  }

  /** Several workers in a row ended while they imported the agent's module. */
  #giveUp(agent: AgentState, exit: WorkerExit): void {
    const { name, module } = agent.ref
    const error = new ManyworldsError(
      'AGENT_LOAD_FAILED',
      `${LOAD_FAILURES} workers in a row ended while importing ${module} to find agent '${name}': ${crashError(exit).message}`,
    )
    agent.failures = 0
    this.#failRunsOf(agent, error)
  }

  async #ship(agent: AgentState): Promise<void> {
    agent.shipping = true
    try {
      agent.place = await this.#shipping!.ship(agent)
    } catch (error) {
      this.#failRunsOf(agent, error as Error)
    } finally {
      agent.shipping = false
    }
    this.#probe(agent)
  }

  /** Fails the runs that have tasks of this agent. If only sub-tasks use it, their parents get the error. */
  #failRunsOf(agent: AgentState, error: Error, also: readonly TaskEntry[] = []): number {
    const held = takeHeld(agent)
    const failed = new Set([...held.filter(({ parent }) => parent === undefined), ...also].map(({ run }) => run))
    for (const run of failed) this.#hooks.failRun(run, error)
    for (const entry of held) {
      if (entry.settled || failed.has(entry.run)) continue
      entry.run.unloadable.set(agent, error)
      this.#hooks.refuse(entry, error)
    }
    return held.length + also.length
  }
}

function takeHeld(agent: AgentState): TaskEntry[] {
  const held = agent.held.splice(0)
  for (const { parent, run } of held) if (!parent) run.aside--
  return held
}
