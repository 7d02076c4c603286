import type { AgentRef } from '../agent.ts'
import { ManyworldsError } from '../errors.ts'
import { subTasksAsked } from '../protocol/check-messages.ts'
import type { Packed, SubTasksAsked } from '../protocol/messages.ts'
import { lastPackedSize, repack } from '../protocol/pack.ts'
import { responseToWire } from '../response.ts'
import type { TaskResponse } from '../task.ts'
import type { AgentState, AgentTable } from './agents.ts'
import { Children, type Request } from './children.ts'
import { Entry, type EntryOptions, type Lease } from './entry.ts'
import type { Run } from './run.ts'
import type { Service, ServiceCall } from './service.ts'
import { type AskedFor, type AskedOptions, type AskedTask, readRequest } from './subtask-request.ts'

interface Hooks {
  addEntry(entry: Entry): void
  profileOf(run: Run, agent: AgentState, timeoutMs: number | undefined, announce: boolean): number
  cancel(entry: Entry): void
  /** The reference that the driver would have made; undefined if a worker of this run may not name that agent. */
  refOf(ref: AgentRef, run: Run): AgentRef | undefined
  arm(): void
}

/** The service that runs sub-tasks. What became of them is kept in its own way: they are tasks. */
export class SubTaskDesk implements Service {
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

  /** Answers the sub-task that has to be run, if it is not known already. */
  #begin(lease: Lease, { id, content, task }: AskedFor): Entry | undefined {
    const { entry } = lease
    const children = entry.children!
    // Asked for before, by a run of the parent that was cut short: it goes on, or is done.
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

  childSettled(child: Entry, response: TaskResponse): void {
    const parent = child.parent!
    // A sub-task of an attempt that is over.
    if (parent.children?.entries.get(child.id) !== child) return
    parent.children.answer(child.id, response)
    this.#answer(parent, parent.children.takeComplete())
  }

  /** The code of a sub-task cannot be loaded: whoever waits for it is told so. */
  refuseChild(child: Entry, error: Error): void {
    const parent = child.parent!
    child.settled = true
    child.run.live--
    if (parent.children?.entries.get(child.id) !== child) return
    // Asked for again, it is tried again.
    parent.children.asked.delete(child.id)
    for (const { answer } of this.#live(parent, parent.children.take(child.id))) answer.reject(asOurs(error))
  }

  cancelChildrenOf(entry: Entry): void {
    for (const child of entry.children?.entries.values() ?? []) this.#hooks.cancel(child)
  }

  #makeChild(parent: Entry, id: string, task: AskedTask): Entry {
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
    return new Entry(run, -1, id, agent, profile, { input: task.input, size }, options, parent)
  }

  #answer(parent: Entry, complete: readonly Request[]): void {
    const { responses } = parent.children!
    for (const { answer, ids } of this.#live(parent, complete))
      answer.resolve(repack(ids.map((id) => responseToWire(responses.get(id)!))))
  }

  /** Those of the lease that counts. */
  #live(parent: Entry, requests: readonly Request[]): Request[] {
    return requests.filter(({ lease }) => lease === parent.lease)
  }
}

const asOurs = (error: Error) =>
  ManyworldsError.is(error) ? error : new ManyworldsError('AGENT_LOAD_FAILED', error.message, { cause: error })
