import type { AgentRef } from '../agent.ts'
import { ManyworldsError } from '../errors.ts'
import { subTasksAsked } from '../protocol/check-messages.ts'
import type { Packed, SubTasksAsked } from '../protocol/messages.ts'
import { lastPackedSize, repack } from '../protocol/pack.ts'
import { responseToWire } from '../response.ts'
import type { TaskResponse } from '../task.ts'
import type { AgentState, AgentTable } from './agents.ts'
import { Children, type Request } from './children.ts'
import type { Run } from './run.ts'
import type { Service, ServiceCall } from './service.ts'
import { type AskedFor, type AskedOptions, type AskedTask, readRequest } from './subtask-request.ts'
import { type EntryOptions, type Lease, TaskEntry } from './task-entry.ts'

interface Hooks {
  addEntry(entry: TaskEntry): void
  profileOf(run: Run, agent: AgentState, timeoutMs: number | undefined, announce: boolean): number
  cancel(entry: TaskEntry): void
  /** The driver's own reference; undefined if workers of this run may not use that agent. */
  refOf(ref: AgentRef, run: Run): AgentRef | undefined
  arm(): void
}

/** The service that runs sub-tasks. It is not durable: sub-tasks are stored as tasks. */
export class SubTaskBroker implements Service {
  readonly once = true
  readonly durable = false
  readonly atOnce = Number.POSITIVE_INFINITY
  readonly unlimited = true
  readonly #agents: AgentTable
  readonly #hooks: Hooks

  constructor(agents: AgentTable, hooks: Hooks) {
    this.#agents = agents
    this.#hooks = hooks
  }

  check(body: unknown): void {
    if (!subTasksAsked(body)) throw new TypeError('a malformed request for sub-tasks')
  }

  ask({ lease, body }: ServiceCall): Promise<Packed> {
    const { entry } = lease
    const asked = readRequest(lease, body as SubTasksAsked, (ref) => this.#hooks.refOf(ref, entry.run))
    entry.children ??= new Children()
    const added = asked.map((one) => this.#begin(lease, one))
    const answer = Promise.withResolvers<Packed>()
    entry.children.expect(
      lease,
      answer,
      asked.map(({ id }) => id),
    )
    for (const child of added) if (child) this.#hooks.addEntry(child)
    this.#answer(entry, entry.children.takeComplete())
    this.#hooks.arm()
    return answer.promise
  }

  /** Returns the sub-task if it has to be run; undefined if it is running or done. */
  #begin(lease: Lease, { id, content, task }: AskedFor): TaskEntry | undefined {
    const { entry } = lease
    const children = entry.children!
    // An interrupted run of the parent asked for it before: it is running or done.
    const known = children.asked.get(id)?.content === content
    children.asked.set(id, { lease, content })
    if (known) return undefined
    const outdated = children.entries.get(id)
    const child = this.#makeChild(entry, id, task)
    children.replace(id, child)
    const restored = entry.run.recorder?.subTask(child, outdated)
    if (outdated) this.#hooks.cancel(outdated)
    if (restored === undefined) return child
    child.settled = true
    entry.run.live--
    children.answer(id, restored)
    return undefined
  }

  childSettled(child: TaskEntry, response: TaskResponse): void {
    const parent = child.parent!
    // Ignore a sub-task of an earlier attempt.
    if (parent.children?.entries.get(child.id) !== child) return
    parent.children.answer(child.id, response)
    this.#answer(parent, parent.children.takeComplete())
  }

  /** The sub-task's code cannot be loaded: rejects the calls that wait for it. */
  refuseChild(child: TaskEntry, error: Error): void {
    const parent = child.parent!
    child.settled = true
    child.run.live--
    if (parent.children?.entries.get(child.id) !== child) return
    // The next request for it tries again.
    parent.children.asked.delete(child.id)
    for (const { answer } of this.#live(parent, parent.children.take(child.id))) answer.reject(asOurs(error))
  }

  cancelChildrenOf(entry: TaskEntry): void {
    for (const child of entry.children?.entries.values() ?? []) this.#hooks.cancel(child)
  }

  #makeChild(parent: TaskEntry, id: string, task: AskedTask): TaskEntry {
    const { run } = parent
    const size = lastPackedSize(task.input) + (typeof task.input === 'object' ? 1024 : 0)
    const agent = this.#agents.find(task.ref, task.params)
    const own = task.options as AskedOptions
    const neverRerun = own.rerun === 'never'
    const options: EntryOptions = {
      maxAttempts: own.maxAttempts ?? run.options.maxAttempts,
      neverRerun,
      requires: own.requires !== undefined && own.requires.length > 0 ? own.requires : undefined,
      info: own.info,
    }
    const profile = this.#hooks.profileOf(run, agent, own.timeoutMs ?? run.options.timeoutMs, neverRerun)
    run.live++
    return new TaskEntry(run, -1, id, agent, profile, { input: task.input, size }, options, parent)
  }

  #answer(parent: TaskEntry, complete: readonly Request[]): void {
    const { responses } = parent.children!
    for (const { answer, ids } of this.#live(parent, complete))
      answer.resolve(repack(ids.map((id) => responseToWire(responses.get(id)!))))
  }

  /** The requests of the live lease. */
  #live(parent: TaskEntry, requests: readonly Request[]): Request[] {
    return requests.filter(({ lease }) => lease === parent.lease)
  }
}

const asOurs = (error: Error) =>
  ManyworldsError.is(error) ? error : new ManyworldsError('AGENT_LOAD_FAILED', error.message, { cause: error })
