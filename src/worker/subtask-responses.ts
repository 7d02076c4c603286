import type { TaskResponse } from '../task.ts'

/**
 * The responses of sub-tasks, in the order of the tasks. Keys are whole ids, `parent/child`, as in the store; `get` and `has` also
 * find a sub-task by its own id, `child`.
 */
export class SubTaskResponses extends Map<string, TaskResponse> {
  readonly #wholeIds = new Map<string, string>()

  /** `given` has the id of each task, undefined for those without one. */
  constructor(given: readonly (string | undefined)[], responses: readonly TaskResponse[]) {
    super()
    for (const [index, response] of responses.entries()) {
      this.set(response.id, response)
      const id = given[index]
      if (id !== undefined) this.#wholeIds.set(id, response.id)
    }
  }

  override get(id: string): TaskResponse | undefined {
    return super.get(this.#wholeIds.get(id) ?? id)
  }

  override has(id: string): boolean {
    return super.has(this.#wholeIds.get(id) ?? id)
  }
}
