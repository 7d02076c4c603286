import { randomUUID } from 'node:crypto'
import { isKnownOperation, isTransient, isUnknownOperation } from './errors.ts'
import type { ExecutePlanResponse, ExecutePlanResponse_ExecutionProgress } from './generated/spark_connect_pb.ts'
import { Patience } from './patience.ts'
import { SparkError } from './spark-error.ts'

/** A server that is silent for this long is gone. */
const GIVE_UP_MS = 60_000

export interface Progress {
  readonly tasks: number
  readonly completed: number
  readonly inflight: number
}

export interface ExecuteOptions {
  readonly signal?: AbortSignal | undefined
  readonly tags?: readonly string[] | undefined
  onProgress?(progress: Progress): void
  /** It was requested; `interrupt` takes this id. */
  onStarted?(operationId: string): void
  /** The number of rows in the batch that comes next. */
  onBatch?(rows: number): void
}

/** The calls that an operation makes through its session. */
export interface Calls {
  execute(operationId: string, signal: AbortSignal): AsyncIterable<ExecutePlanResponse>
  reattach(operationId: string, after: string | undefined, signal: AbortSignal): AsyncIterable<ExecutePlanResponse>
  /** Releases responses on the server: up to this one, or all. Never rejects. */
  release(operationId: string, upTo: string | undefined): Promise<void>
  /** Never rejects. */
  interrupt(operationId: string): Promise<void>
  /** Whether to retry after a broken connection. */
  mayRetry(): boolean
  keepsAlive(): boolean
}

/**
 * One execution on the server, whose responses arrive over as many streams as needed. A stream may break, and the server ends
 * each after two minutes; the next one continues after the last response. Invariant: `#last` is the id of the last response
 * that was handed out, so that none is handed out twice or lost.
 */
export class Operation {
  readonly id = randomUUID()
  readonly #calls: Calls
  readonly #options: ExecuteOptions
  readonly #stop = new AbortController()
  readonly #patience: Patience
  #last: string | undefined
  #complete = false
  #ended: Promise<void> | undefined
  #releasing = false
  #toRelease: string | undefined

  constructor(calls: Calls, options: ExecuteOptions, giveUpMs = GIVE_UP_MS) {
    this.#calls = calls
    this.#options = options
    this.#patience = new Patience(giveUpMs)
  }

  /** The batches, each an Arrow stream of its own, requested on demand. */
  async *batches(): AsyncGenerator<Uint8Array> {
    const { signal, onStarted } = this.#options
    signal?.throwIfAborted()
    // End the operation at once, even if the consumer never asks for the next batch.
    const abort = () => void this.#end()
    signal?.addEventListener('abort', abort)
    let rows = 0n
    let stopped = true
    try {
      onStarted?.(this.id)
      for await (const response of this.#responses()) {
        if (response.responseId !== '') this.#last = response.responseId
        const { responseType } = response
        if (responseType.case === 'executionProgress') this.#options.onProgress?.(sum(responseType.value))
        else if (responseType.case === 'resultComplete') this.#complete = true
        else if (responseType.case === 'arrowBatch') {
          const { startOffset = rows, rowCount, data } = responseType.value
          if (startOffset !== rows) throw new SparkError(`Spark sent rows from ${startOffset} on instead of ${rows}`)
          rows += rowCount
          this.#options.onBatch?.(Number(rowCount))
          yield data
        } else if (responseType.case === 'sqlCommandResult') {
          // A command's result is available at once, without a query.
          const { relType } = responseType.value.relation ?? {}
          if (relType?.case === 'localRelation' && relType.value.data !== undefined) yield relType.value.data
        }
        if (!this.#complete) this.#releaseUpTo(this.#last)
      }
      stopped = false
    } catch (error) {
      stopped = signal?.aborted === true
      throw stopped ? signal!.reason : error
    } finally {
      signal?.removeEventListener('abort', abort)
      const ended = this.#end()
      // A consumer that stops early waits until the operation has stopped.
      if (stopped) await ended
    }
  }

  async *#responses(): AsyncGenerator<ExecutePlanResponse> {
    let start = true
    for (;;) {
      let came = false
      try {
        const { signal } = this.#stop
        const stream = start ? this.#calls.execute(this.id, signal) : this.#calls.reattach(this.id, this.#last, signal)
        for await (const response of stream) {
          came = true
          start = false
          this.#patience.renew()
          yield response
          if (this.#complete) return
        }
        // The server ended the stream (its time limit): more responses follow.
        start = false
        if (!came && !(await this.#wait())) throw new SparkError('Spark ended the stream of results before its end')
      } catch (error) {
        if (this.#stop.signal.aborted) throw error
        if (isUnknownOperation(error) && this.#last === undefined && !start) start = true
        else if (isKnownOperation(error) && start) start = false
        else if (isTransient(error) && this.#calls.mayRetry()) start = false
        else throw error
        if (!came && !(await this.#wait())) throw error
      }
    }
  }

  #wait(): Promise<boolean> {
    return this.#patience.wait({ signal: this.#stop.signal, ref: this.#calls.keepsAlive() })
  }

  /** One call at a time: if batches arrive faster, one call releases several. */
  #releaseUpTo(id: string | undefined): void {
    this.#toRelease = id
    if (this.#releasing) return
    this.#releasing = true
    void (async () => {
      while (this.#toRelease !== undefined && this.#ended === undefined) {
        const upTo = this.#toRelease
        this.#toRelease = undefined
        await this.#calls.release(this.id, upTo)
      }
      this.#releasing = false
    })()
  }

  #end(): Promise<void> {
    this.#ended ??= (async () => {
      this.#stop.abort()
      if (!this.#complete) await this.#calls.interrupt(this.id)
      await this.#calls.release(this.id, undefined)
    })()
    return this.#ended
  }
}

function sum({ stages, numInflightTasks }: ExecutePlanResponse_ExecutionProgress): Progress {
  const total = (of: 'numTasks' | 'numCompletedTasks') => Number(stages.reduce((all, stage) => all + stage[of], 0n))
  return { tasks: total('numTasks'), completed: total('numCompletedTasks'), inflight: Number(numInflightTasks) }
}
