import type { TaskResponse } from '../task.ts'
import type { Trajectory } from '../trajectory/trajectory.ts'

/**
 * The trajectories of responses as they finish. Not an async generator, because `return` of a generator would wait for
 * the pending response before releasing the run. Nothing starts before the first `next()`, and a run whose trajectories
 * are not consumed reads no more tasks.
 */
export class TrajectoryStream implements AsyncIterableIterator<Trajectory, undefined>, AsyncDisposable {
  readonly #responses: AsyncIterableIterator<TaskResponse, undefined>
  readonly #complete: (trajectory: Trajectory) => Trajectory
  #left = false

  constructor(
    responses: AsyncIterableIterator<TaskResponse, undefined>,
    complete: (trajectory: Trajectory) => Trajectory,
  ) {
    this.#responses = responses
    this.#complete = complete
  }

  [Symbol.asyncIterator](): this {
    return this
  }

  async next(): Promise<IteratorResult<Trajectory, undefined>> {
    const { done, value: response } = await this.#responses.next()
    if (done) return { done, value: undefined }
    try {
      return { done: false, value: this.#complete(await response.toTrajectory()) }
    } catch (error) {
      // The store can no longer be read, and a consumer that left the loop does not need the trajectory.
      if (this.#left) return { done: true, value: undefined }
      await this.return()
      throw error
    }
  }

  /** Cancels unfinished tasks, and returns when the run has ended. */
  async return(): Promise<IteratorResult<Trajectory, undefined>> {
    this.#left = true
    await this.#responses.return?.()
    return { done: true, value: undefined }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.return()
  }
}
