import { Deque } from '../deque.ts'
import type { RunSink } from '../executor/run.ts'
import type { TaskResponse } from '../task.ts'
import type { StartedRun } from './start-run.ts'

/** The most responses that wait to be fetched. Beyond this, no more tasks are read. */
const MAX_UNFETCHED = 1024
const MAX_UNFETCHED_BYTES = 64 * 1024 * 1024

/**
 * Responses as they finish. Written by hand rather than as an async generator, which would cost three promises each.
 * Nothing starts before the first `next()`; leaving the loop early cancels the rest.
 */
export class ResponseStream<R extends TaskResponse> implements AsyncIterableIterator<R, undefined> {
  readonly #start: (sink: RunSink) => Promise<StartedRun>
  #started: StartedRun | undefined
  #startedOnce = false
  #waiting: { resolve: (result: IteratorResult<R, undefined>) => void; reject: (error: unknown) => void }[] = []
  readonly #queue = new Deque<{ response: R; bytes: number }>()
  #bytes = 0
  #over = false
  #error: Error | undefined
  #paused = false
  #began = false
  readonly #ended = Promise.withResolvers<void>()

  constructor(start: (sink: RunSink) => Promise<StartedRun>) {
    this.#start = start
  }

  [Symbol.asyncIterator](): this {
    return this
  }

  next(): Promise<IteratorResult<R, undefined>> {
    if (!this.#startedOnce) this.#begin()
    const next = this.#queue.shift()
    if (next) return Promise.resolve({ done: false, value: this.#taken(next) })
    if (this.#over) return this.#finish()
    return new Promise((resolve, reject) => this.#waiting.push({ resolve, reject }))
  }

  async return(): Promise<IteratorResult<R, undefined>> {
    this.#startedOnce = true
    this.#over = true
    this.#error = undefined
    this.#queue.drain()
    // Calls of `next()` that wait get no response.
    for (const waiting of this.#waiting.splice(0)) waiting.resolve({ done: true, value: undefined })
    if (this.#started) this.#started.dispatcher.stopRun(this.#started.run, 'cancelled')
    // Wait for the end of the run, so that its file can be resumed at once.
    if (this.#began) await this.#ended.promise
    return { done: true, value: undefined }
  }

  #begin(): void {
    this.#startedOnce = true
    this.#began = true
    const sink: RunSink = {
      response: (_index, response, bytes) => this.#push(response as R, bytes),
      full: () => {
        this.#paused = this.#queue.length >= MAX_UNFETCHED || this.#bytes >= MAX_UNFETCHED_BYTES
        return this.#paused
      },
      end: (error) => this.#end(error),
    }
    this.#start(sink).then(
      (started) => {
        this.#started = started
        if (this.#over) started.dispatcher.stopRun(started.run, 'cancelled')
      },
      (error: Error) => this.#end(error),
    )
  }

  #push(response: R, bytes: number): void {
    // The loop was left; responses that come now were cancelled.
    if (this.#over) return
    const waiting = this.#waiting.shift()
    if (waiting) waiting.resolve({ done: false, value: response })
    else {
      this.#queue.push({ response, bytes })
      this.#bytes += bytes
    }
  }

  #taken({ response, bytes }: { response: R; bytes: number }): R {
    this.#bytes -= bytes
    const left = this.#queue.length
    if (this.#paused && left < MAX_UNFETCHED / 2 && this.#bytes < MAX_UNFETCHED_BYTES && this.#started) {
      this.#paused = false
      this.#started.dispatcher.wake(this.#started.run)
    }
    return response
  }

  #end(error: Error | undefined): void {
    this.#ended.resolve()
    if (this.#over) return
    this.#over = true
    this.#error = error
    for (const waiting of this.#waiting.splice(0)) this.#finish().then(waiting.resolve, waiting.reject)
  }

  /** The error is thrown once, after the last response. */
  async #finish(): Promise<IteratorResult<R, undefined>> {
    const error = this.#error
    this.#error = undefined
    if (error) throw error
    return { done: true, value: undefined }
  }
}
