import type { TaskResponse } from '../task.ts'
import type { Entry, Lease } from './entry.ts'

/** A sub-task call that a parent waits for. */
interface Request {
  readonly lease: Lease
  readonly request: number
  readonly ids: readonly string[]
}

/**
 * The sub-tasks of one task. They outlive a rerun of their parent: if it runs again because somebody else took its
 * worker down, and asks for the same sub-tasks again, it gets what they came to, rather than a second run of them.
 */
export class Children {
  readonly entries = new Map<string, Entry>()
  /** What each was asked to do and by which lease: the same again is the same sub-task only for another lease. */
  readonly asked = new Map<string, { readonly lease: Lease; readonly content: string }>()
  readonly responses = new Map<string, TaskResponse>()
  readonly requests: Request[] = []

  /** Requests that are answered in full now. */
  takeComplete(): Request[] {
    const complete = this.requests.filter(({ ids }) => ids.every((id) => this.responses.has(id)))
    for (const request of complete) this.requests.splice(this.requests.indexOf(request), 1)
    return complete
  }

  /** A new attempt of the parent starts over. */
  forget(): void {
    this.entries.clear()
    this.asked.clear()
    this.responses.clear()
    this.requests.length = 0
  }
}
