import type { Context } from '../agent.ts'
import type { Maybe } from './environment.ts'

/** Thrown inside a step agent when its episode is cancelled. */
export class EpisodeAborted extends Error {
  /** `'timeout'`: by the agent's `timeoutMs`. `'task'`: the task timed out or was cancelled, so its response is already known. */
  readonly by: 'timeout' | 'task'

  constructor(by: 'timeout' | 'task', message: string) {
    super(message)
    this.by = by
  }
}

/** An agent that never waits yields to the event loop after this time. */
const SLICE_MS = 5

/**
 * The time limit of an episode: waits for promises until the agent's `timeoutMs` or the end of the task, whichever comes
 * first. Results that come later are ignored. Episodes that never wait create neither a timer nor a listener.
 */
export class EpisodeDeadline {
  readonly #ctx: Context
  readonly #deadline: number
  readonly #timeoutMs: number | null
  #controller: AbortController | undefined
  #timer: NodeJS.Timeout | undefined
  #listening = false
  #ended = false
  #given: EpisodeAborted | undefined
  #waiting: ((given: EpisodeAborted) => void) | undefined
  #sliceBegan = performance.now()

  constructor(ctx: Context, timeoutMs: number | null) {
    this.#ctx = ctx
    this.#timeoutMs = timeoutMs
    this.#deadline = timeoutMs === null ? Number.POSITIVE_INFINITY : this.#sliceBegan + timeoutMs
  }

  /** Aborted when the episode is cancelled. */
  get signal(): AbortSignal {
    if (this.#controller === undefined) {
      this.#controller = new AbortController()
      this.#listen()
      if (this.#given) this.#controller.abort(this.#reason(this.#given))
    }
    return this.#controller.signal
  }

  /** Resolves to the value of the promise, or rejects with `EpisodeAborted`. */
  wait<T>(promise: PromiseLike<T>): Promise<T> {
    this.#listen()
    return new Promise<T>((resolve, reject) => {
      this.#waiting = reject
      // A late result or error is ignored, because this promise is already settled.
      promise.then((value) => {
        this.#sliceBegan = performance.now()
        resolve(value)
      }, reject)
      if (this.#given) reject(this.#given)
    })
  }

  /** Call this between two steps. Throws `EpisodeAborted` if the time is over. Returns a promise if the agent must yield to the event loop. */
  check(): Promise<void> | undefined {
    if (this.#given) throw this.#given
    const now = performance.now()
    if (now >= this.#deadline) {
      this.#giveUp(this.#late())
      throw this.#given
    }
    return now - this.#sliceBegan < SLICE_MS ? undefined : this.#rest()
  }

  /** Ends all waiting: the episode is over. */
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

  readonly #taskEnded = () => this.#giveUp(new EpisodeAborted('task', 'the task has ended'))

  #late(): EpisodeAborted {
    return new EpisodeAborted('timeout', `the episode took longer than the agent's timeoutMs of ${this.#timeoutMs} ms`)
  }

  #reason({ by, message }: EpisodeAborted): unknown {
    return by === 'task' ? this.#ctx.signal.reason : new DOMException(message, 'TimeoutError')
  }

  #giveUp(given: EpisodeAborted): void {
    if (this.#given) return
    this.#given = given
    this.end()
    this.#waiting?.(given)
    this.#controller?.abort(this.#reason(given))
  }
}

export const isPromise = <T>(value: Maybe<T>): value is Promise<T> =>
  typeof value === 'object' && value !== null && typeof (value as PromiseLike<T>).then === 'function'

/** Waits for a promise that never rejects, for at most `ms`. */
export async function within(promise: Promise<void>, ms: number, late: () => void): Promise<void> {
  let timer: NodeJS.Timeout | undefined
  const limit = new Promise<void>((resolve) => {
    timer = setTimeout(() => resolve(late()), ms)
  })
  await Promise.race([promise, limit])
  clearTimeout(timer)
}
