import { hash } from 'node:crypto'
import { serialize } from 'node:v8'
import type { AgentRef } from '../agent.ts'
import { ManyworldsError } from '../errors.ts'
import type { SubTaskRequest } from '../protocol/messages.ts'
import { lastPackedSize, pack } from '../protocol/pack.ts'
import { responseToWire } from '../response.ts'
import type { TaskOptions, TaskResponse } from '../task.ts'
import type { AgentState, AgentTable } from './agents.ts'
import { Children } from './children.ts'
import { Entry, type EntryOptions, type Lease } from './entry.ts'
import type { Run } from './run.ts'
import type { WorkerHandle } from './worker-handle.ts'

/** Deeper than this is a recursion that has lost its end. */
const MAX_DEPTH = 32

interface Hooks {
  addEntry(entry: Entry): void
  profileOf(run: Run, agent: AgentState, timeoutMs: number | undefined, announce: boolean): number
  cancel(entry: Entry): void
  /** The reference that the driver would have made. */
  refOf(ref: AgentRef): AgentRef
  loadChanged(worker: WorkerHandle, by: number): void
  arm(): void
}

type ChildOptions = Pick<TaskOptions, 'timeoutMs' | 'maxAttempts' | 'requires' | 'rerun'> & { info?: unknown }

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
    const ids = message.tasks.map(({ id }, index) => `${entry.id}/${id ?? `${message.ordinal + 1}.${index + 1}`}`)
    entry.children ??= new Children()
    const refusal = refuse(lease, ids)
    if (refusal) return this.#refuse(worker, message.request, refusal)
    const children = entry.children
    children.requests.push({ lease, request: message.request, ids })
    if (lease.waitingCalls++ === 0) this.#hooks.loadChanged(worker, -1)
    message.tasks.forEach((asked, index) => {
      const task = { ...asked, ref: this.#hooks.refOf(asked.ref) }
      const id = ids[index]!
      const content = hash('sha256', serialize([task.ref, task.params, task.input]))
      // Asked for before, by a run of the parent that was cut short: it goes on, or is done.
      const known = children.asked.get(id)?.content === content
      children.asked.set(id, { lease, content })
      if (known) return
      const outdated = children.entries.get(id)
      const child = this.#makeChild(entry, id, task)
      children.entries.set(id, child)
      children.responses.delete(id)
      const restored = entry.run.recorder?.subTask(child, outdated)
      if (outdated) this.#hooks.cancel(outdated)
      if (restored === undefined) this.#hooks.addEntry(child)
      else {
        child.settled = true
        entry.run.live--
        children.responses.set(id, restored)
      }
    })
    this.#answer(entry)
    this.#hooks.arm()
  }

  childSettled(child: Entry, response: TaskResponse): void {
    const parent = child.parent!
    // A sub-task of an attempt that is over.
    if (parent.children?.entries.get(child.id) !== child) return
    parent.children.responses.set(child.id, response)
    this.#answer(parent)
  }

  cancelChildrenOf(entry: Entry): void {
    for (const child of entry.children?.entries.values() ?? []) this.#hooks.cancel(child)
  }

  #makeChild(parent: Entry, id: string, task: SubTaskRequest['tasks'][number]): Entry {
    const { run } = parent
    const size = lastPackedSize(task.input) + (typeof task.input === 'object' ? 1024 : 0)
    const agent = this.#agents.find(task.ref, task.params)
    const own = task.options as ChildOptions
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

  #answer(parent: Entry): void {
    const { children } = parent
    for (const { lease, request, ids } of children!.takeComplete()) {
      if (parent.lease !== lease) continue
      if (--lease.waitingCalls === 0) this.#hooks.loadChanged(lease.worker, 1)
      const value = pack(ids.map((id) => responseToWire(children!.responses.get(id)!)))
      lease.worker.channel.post({ type: 'reply', request, ok: true, value }, lastPackedSize(value))
    }
  }

  #refuse(worker: WorkerHandle, request: number, error: ManyworldsError): void {
    const value = pack({ code: error.code, message: error.message })
    worker.channel.post({ type: 'reply', request, ok: false, value })
  }
}

function refuse(lease: Lease, ids: readonly string[]): ManyworldsError | undefined {
  const { entry } = lease
  if (entry.depth >= MAX_DEPTH)
    return new ManyworldsError(
      'SUBTASK_TOO_DEEP',
      `task '${entry.id}' is already ${MAX_DEPTH} sub-tasks deep; a recursion without an end?`,
    )
  const twice = ids.find((id, index) => ids.indexOf(id) < index || entry.children?.asked.get(id)?.lease === lease)
  if (twice !== undefined)
    return new ManyworldsError(
      'TASK_DUPLICATE_ID',
      `task '${entry.id}' asked for two sub-tasks with the id '${twice}'; leave ids out, or make them differ`,
    )
  return undefined
}
