import type { Context } from '../agent.ts'
import type { Maybe } from './environment.ts'

/** Thrown inside a step agent when its episode is given up. */
export class GivenUp extends Error {
  /** `'timeout'`: by the clock of the agent. `'task'`: the task timed out or was cancelled, and its response is known. */
  readonly by: 'timeout' | 'task'

  constructor(by: 'timeout' | 'task', message: string) {
    super(message)
    this.by = by
  }
}

/** An agent that never waits lets others go on after so long. */
const SLICE_MS = 5

/**
 * How long an episode may take: waits for promises until the clock of the agent or the end of the task, whichever comes
 * first. What is given up is not listened to any more. Episodes that never wait have neither a timer nor a signal.
 */
export class Patience {
  readonly #ctx: Context
  readonly #deadline: number
  readonly #timeoutMs: number | null
  #controller: AbortController | undefined
  #timer: NodeJS.Timeout | undefined
  #listening = false
  #ended = false
  #given: GivenUp | undefined
  #waiting: ((given: GivenUp) => void) | undefined
  #sliceBegan = performance.now()

  constructor(ctx: Context, timeoutMs: number | null) {
    this.#ctx = ctx
    this.#timeoutMs = timeoutMs
    this.#deadline = timeoutMs === null ? Number.POSITIVE_INFINITY : this.#sliceBegan + timeoutMs
  }

  /** Aborted when the episode is given up. */
  get signal(): AbortSignal {
    if (this.#controller === undefined) {
      this.#controller = new AbortController()
      this.#listen()
      if (this.#given) this.#controller.abort(this.#reason(this.#given))
    }
    return this.#controller.signal
  }

  /** The value of a promise, or `GivenUp`. */
  wait<T>(promise: PromiseLike<T>): Promise<T> {
    this.#listen()
    return new Promise<T>((resolve, reject) => {
      this.#waiting = reject
      // What comes too late, also an error, finds this promise settled.
      promise.then((value) => {
        this.#sliceBegan = performance.now()
        resolve(value)
      }, reject)
      if (this.#given) reject(this.#given)
    })
  }

  /** Between two steps. Throws `GivenUp` if the time is over; a promise: the agent has computed for long enough. */
  check(): Promise<void> | undefined {
    if (this.#given) throw this.#given
    const now = performance.now()
    if (now >= this.#deadline) {
      this.#giveUp(this.#late())
      throw this.#given
    }
    return now - this.#sliceBegan < SLICE_MS ? undefined : this.#rest()
  }

  /** The episode is over, and nothing is waited for any more. */
  end(): void {
    this.#ended = true
    clearTimeout(this.#timer)
    if (this.#listening) this.#ctx.signal.removeEventListener('abort', this.#taskEnded)
    this.#listening = false
  }

  async #rest(): Promise<void> {
    await this.wait(new Promise<void>((resolve) => setImmediate(resolve)))
  }

  #listen(): void {
    if (this.#listening || this.#ended) return
    this.#listening = true
    const { signal } = this.#ctx
    if (signal.aborted) this.#taskEnded()
    else signal.addEventListener('abort', this.#taskEnded)
    if (this.#timeoutMs === null) return
    const left = Math.max(0, this.#deadline - performance.now())
    this.#timer = setTimeout(() => this.#giveUp(this.#late()), left)
  }

  readonly #taskEnded = () => this.#giveUp(new GivenUp('task', 'the task has ended'))

  #late(): GivenUp {
    return new GivenUp('timeout', `the episode took longer than the agent's timeoutMs of ${this.#timeoutMs} ms`)
  }

  #reason({ by, message }: GivenUp): unknown {
    return by === 'task' ? this.#ctx.signal.reason : new DOMException(message, 'TimeoutError')
  }

  #giveUp(given: GivenUp): void {
    if (this.#given) return
    this.#given = given
    this.end()
    this.#waiting?.(given)
    this.#controller?.abort(this.#reason(given))
  }
}

export const isPromise = <T>(value: Maybe<T>): value is Promise<T> =>
  typeof value === 'object' && value !== null && typeof (value as PromiseLike<T>).then === 'function'

/** Waits for a promise that never fails, but not for longer than this. */
export async function within(promise: Promise<void>, ms: number, late: () => void): Promise<void> {
  let timer: NodeJS.Timeout | undefined
  const limit = new Promise<void>((resolve) => {
    timer = setTimeout(() => resolve(late()), ms)
  })
  await Promise.race([promise, limit])
  clearTimeout(timer)
}
