import type { Packed } from '../protocol/messages.ts'
import type { TaskResponse } from '../task.ts'
import type { Lease, TaskEntry } from './task-entry.ts'

/** A sub-task call that a parent waits for. */
export interface Request {
  readonly lease: Lease
  readonly answer: PromiseWithResolvers<Packed>
  readonly ids: readonly string[]
  /** How many of them have no response yet. */
  missing: number
}

/** `missing` of a call that was refused: no answer can complete it. */
const OVER = Number.POSITIVE_INFINITY

/**
 * The sub-tasks of one task. They outlive a rerun of their parent: if another task crashed the parent's worker, and the rerun
 * asks for the same sub-tasks, it gets their responses instead of running them twice.
 */
export class Children {
  readonly entries = new Map<string, TaskEntry>()
  /** The content of each sub-task, and the lease that asked for it: only another lease may ask for the same sub-task again. */
  readonly asked = new Map<string, { readonly lease: Lease; readonly content: string }>()
  readonly responses = new Map<string, TaskResponse>()
  /** The calls that wait for each sub-task. */
  readonly #waiting = new Map<string, Request[]>()
  readonly #complete: Request[] = []

  /** Sub-tasks that are not done. */
  get pending(): number {
    return this.entries.size - this.responses.size
  }

  /** Registers a call that waits for these sub-tasks, some of which may be done. */
  expect(lease: Lease, answer: PromiseWithResolvers<Packed>, ids: readonly string[]): void {
    const call: Request = { lease, answer, ids, missing: 0 }
    for (const id of ids) if (!this.responses.has(id)) this.#wait(call, id)
    if (call.missing === 0) this.#complete.push(call)
  }

  /** Puts another sub-task under this id: calls that wait for the id now wait for it. */
  replace(id: string, entry: TaskEntry): void {
    this.entries.set(id, entry)
    this.responses.delete(id)
  }

  answer(id: string, response: TaskResponse): void {
    this.responses.set(id, response)
    for (const call of this.#waiting.get(id) ?? []) if (--call.missing === 0) this.#complete.push(call)
    this.#waiting.delete(id)
  }

  /** Removes and returns the calls whose sub-tasks are all done. */
  takeComplete(): Request[] {
    return this.#complete.splice(0)
  }

  /** Removes and returns the calls that wait for this sub-task, which will not run. */
  take(id: string): Request[] {
    const calls = (this.#waiting.get(id) ?? []).filter(({ missing }) => missing !== OVER)
    this.#waiting.delete(id)
    for (const call of calls) call.missing = OVER
    return calls
  }

  /** A new attempt of the parent starts over. */
  forget(): void {
    this.entries.clear()
    this.asked.clear()
    this.responses.clear()
    this.#waiting.clear()
    this.#complete.length = 0
  }

  #wait(call: Request, id: string): void {
    const calls = this.#waiting.get(id)
    if (calls) calls.push(call)
    else this.#waiting.set(id, [call])
    call.missing++
  }
}
