import type { TaskResponse } from '../task.ts'
import type { Trajectory } from '../trajectory/trajectory.ts'

/**
 * Trajectories of responses, as they come. Not an async generator: that would let go of the run only when the response that it waits for is there. Nothing
 * starts before the first `next()`, and a run whose trajectories nobody takes reads no more tasks.
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
      // The store cannot be read any more, and whoever left does not want it.
      if (this.#left) return { done: true, value: undefined }
      await this.return()
      throw error
    }
  }

  /** Cancels what is not done, and returns when the run has ended. */
  async return(): Promise<IteratorResult<Trajectory, undefined>> {
    this.#left = true
    await this.#responses.return?.()
    return { done: true, value: undefined }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.return()
  }
}
