import type { Packed } from '../protocol/messages.ts'
import type { TaskResponse } from '../task.ts'
import type { Entry, Lease } from './entry.ts'

/** A sub-task call that a parent waits for. */
export interface Request {
  readonly lease: Lease
  readonly answer: PromiseWithResolvers<Packed>
  readonly ids: readonly string[]
  /** How many of them have no response yet. */
  missing: number
}

/** What is missing of a call that was refused: nothing completes it any more. */
const OVER = Number.POSITIVE_INFINITY

/**
 * The sub-tasks of one task. They outlive a rerun of their parent: if it runs again because somebody else took its
 * worker down, and asks for the same sub-tasks again, it gets what they came to, rather than a second run of them.
 */
export class Children {
  readonly entries = new Map<string, Entry>()
  /** What each was asked to do and by which lease: the same again is the same sub-task only for another lease. */
  readonly asked = new Map<string, { readonly lease: Lease; readonly content: string }>()
  readonly responses = new Map<string, TaskResponse>()
  /** Who waits for each. */
  readonly #waiting = new Map<string, Request[]>()
  readonly #complete: Request[] = []

  /** Sub-tasks that are not done. */
  get pending(): number {
    return this.entries.size - this.responses.size
  }

  /** A call waits for these, some of which may be done. */
  expect(lease: Lease, answer: PromiseWithResolvers<Packed>, ids: readonly string[]): void {
    const call: Request = { lease, answer, ids, missing: 0 }
    for (const id of ids) if (!this.responses.has(id)) this.#wait(call, id)
    if (call.missing === 0) this.#complete.push(call)
  }

  /** Another sub-task of this id: whoever waits for the id waits for it. */
  replace(id: string, entry: Entry): void {
    this.entries.set(id, entry)
    this.responses.delete(id)
  }

  answer(id: string, response: TaskResponse): void {
    this.responses.set(id, response)
    for (const call of this.#waiting.get(id) ?? []) if (--call.missing === 0) this.#complete.push(call)
    this.#waiting.delete(id)
  }

  /** Calls that are answered in full now. */
  takeComplete(): Request[] {
    return this.#complete.splice(0)
  }

  /** Calls that wait for this one, and now will not. */
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
