import { setTimeout as sleep } from 'node:timers/promises'
import { ManyworldsError } from '../../../errors.ts'
import type { TaskResponse } from '../../../task.ts'
import type { SparkSink } from './sink.ts'
import { kindInWords } from './words.ts'

/** How long an abandoned stream of responses may take to end. */
const STOP_MS = 5000

export type Responses = Parameters<SparkSink['write']>[0]
type Item = IteratorResult<TaskResponse, unknown>

/** Reads responses one at a time, from any kind of iterable. */
export class ResponseSource {
  readonly #iterator: AsyncIterator<TaskResponse, unknown> | Iterator<TaskResponse, unknown>
  #asked: Promise<Item> | undefined

  constructor(responses: Responses) {
    this.#iterator = iteratorOf(responses)
  }

  /** The next response: the same one until `taken` is called. */
  ask(): Promise<Item> {
    if (this.#asked === undefined) {
      this.#asked = (async () => this.#iterator.next())()
      // A later call gets the error.
      this.#asked.catch(() => {})
    }
    return this.#asked
  }

  taken(): void {
    this.#asked = undefined
  }

  /** Cancels the run whose responses are no longer needed. */
  async stop(): Promise<void> {
    const stopped = (async () => this.#iterator.return?.())().catch(() => {})
    await Promise.race([stopped, sleep(STOP_MS, undefined, { ref: false })])
  }
}

function iteratorOf(responses: Responses): AsyncIterator<TaskResponse, unknown> | Iterator<TaskResponse, unknown> {
  if (responses instanceof Map) return responses.values()
  if (typeof responses === 'object' && responses !== null) {
    if (Symbol.asyncIterator in responses) return responses[Symbol.asyncIterator]()
    if (Symbol.iterator in responses) return (responses as Iterable<TaskResponse>)[Symbol.iterator]()
  }
  const what = (responses as unknown) instanceof Promise ? 'a Promise: await it first' : kindInWords(responses)
  throw new ManyworldsError(
    'CONFIG_INVALID',
    `sparkSink: write() takes responses, as returned by runTask or streamTask; this is ${what}`,
  )
}
