import type { AgentRef } from '../agent.ts'
import { ManyworldsError } from '../errors.ts'
import type { SubTaskRequest } from '../protocol/messages.ts'
import { lastPackedSize, pack, repack } from '../protocol/pack.ts'
import { responseToWire } from '../response.ts'
import type { TaskResponse } from '../task.ts'
import type { AgentState, AgentTable } from './agents.ts'
import { Children, type Request } from './children.ts'
import { Entry, type EntryOptions, type Lease } from './entry.ts'
import type { Run } from './run.ts'
import { type AskedFor, type AskedOptions, type AskedTask, readRequest } from './subtask-request.ts'
import type { WorkerHandle } from './worker-handle.ts'

interface Hooks {
  addEntry(entry: Entry): void
  profileOf(run: Run, agent: AgentState, timeoutMs: number | undefined, announce: boolean): number
  cancel(entry: Entry): void
  /** The reference that the driver would have made; undefined if a worker of this run may not name that agent. */
  refOf(ref: AgentRef, run: Run): AgentRef | undefined
  /** Its task waits for one more thing, or for one less. */
  waits(lease: Lease): void
  goesOn(lease: Lease): void
  arm(): void
}

/** Where tasks hand in sub-tasks, and fetch what became of them. */
export class SubTaskDesk {
  readonly #agents: AgentTable
  readonly #hooks: Hooks

  constructor(agents: AgentTable, hooks: Hooks) {
    this.#agents = agents
    this.#hooks = hooks
  }

  onRequest(worker: WorkerHandle, message: SubTaskRequest): void {
    const lease = worker.leases.get(message.lease)
    if (!lease) return
    const { entry } = lease
    let asked: AskedFor[]
    try {
      asked = readRequest(lease, message, (ref) => this.#hooks.refOf(ref, entry.run))
    } catch (error) {
      if (!ManyworldsError.is(error)) throw error
      return refuse(worker, message.request, error)
    }
    entry.children ??= new Children()
    const added = asked.map((one) => this.#ask(lease, one))
    const ids = asked.map(({ id }) => id)
    entry.children.expect(lease, message.request, ids)
    this.#hooks.waits(lease)
    for (const child of added) if (child) this.#hooks.addEntry(child)
    this.#answer(entry, entry.children.takeComplete())
    this.#hooks.arm()
  }

  /** Answers the sub-task that has to be run, if it is not known already. */
  #ask(lease: Lease, { id, content, task }: AskedFor): Entry | undefined {
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
    for (const { lease, request } of this.#over(parent, parent.children.take(child.id)))
      refuse(lease.worker, request, error)
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
    for (const { lease, request, ids } of this.#over(parent, complete)) {
      const value = repack(ids.map((id) => responseToWire(responses.get(id)!)))
      lease.worker.channel.post({ type: 'reply', request, ok: true, value }, lastPackedSize(value))
    }
  }

  /** Of requests that are over, those of the lease that counts: it waits for one less. */
  #over(parent: Entry, requests: readonly Request[]): Request[] {
    const live = requests.filter(({ lease }) => lease === parent.lease)
    for (const { lease } of live) this.#hooks.goesOn(lease)
    return live
  }
}

function refuse(worker: WorkerHandle, request: number, error: Error): void {
  const code = ManyworldsError.is(error) ? error.code : 'AGENT_LOAD_FAILED'
  worker.channel.post({ type: 'reply', request, ok: false, value: pack({ code, message: error.message }) })
}
