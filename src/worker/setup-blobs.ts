import { ManyworldsError } from '../errors.ts'
import type { TaskItem } from '../protocol/messages.ts'
import type { Asker } from './asker.ts'
import type { WorkerBlobs } from './blobs.ts'
import type { Requests } from './requests.ts'

/** A task that waits for its agent's setup, and on whose behalf the setup makes requests. */
class WaitingTask implements Asker {
  readonly lease: number
  readonly #abort = new AbortController()
  readonly signal: AbortSignal = this.#abort.signal
  readonly running: undefined
  asks: Asker['asks']
  blobs: Asker['blobs']

  constructor(lease: number) {
    this.lease = lease
  }

  get settled(): boolean {
    return this.signal.aborted
  }

  get whyOver(): unknown {
    return this.signal.reason
  }

  leave(): void {
    this.#abort.abort(new Error('the task no longer waits for the setup'))
  }
}

/**
 * The blobs that an agent's setup asks for. Requests belong to tasks, so the setup asks on behalf of a task that waits for it.
 * If that task is cancelled or returned to the driver, it asks again on behalf of the next.
 */
export class SetupBlobs {
  readonly #blobs: WorkerBlobs
  readonly #requests: Requests
  readonly #waiting: readonly TaskItem[]
  #asker: WaitingTask | undefined
  #wake = () => {}
  #over = false

  /** `waiting`: the tasks that wait for the setup. */
  constructor(blobs: WorkerBlobs, requests: Requests, waiting: readonly TaskItem[]) {
    this.#blobs = blobs
    this.#requests = requests
    this.#waiting = waiting
  }

  /** By hash only: a setup serves tasks of many runs, and a name could mean another blob in each. */
  async get(sha256: string): Promise<Uint8Array> {
    if (!/^[0-9a-f]{64}$/.test(sha256))
      throw new ManyworldsError(
        'BLOB_UNKNOWN',
        `\`blob\` of a setup takes the SHA-256 of a blob, not '${sha256}'; give the hash to the agent as one of its params`,
      )
    for (;;) {
      const asker = await this.#next()
      try {
        return await this.#blobs.get(asker, sha256)
      } catch (error) {
        if (!asker.settled || this.#over) throw error
      }
    }
  }

  /** The tasks that wait for the setup have changed. */
  changed(): void {
    const asker = this.#asker
    if (asker && !this.#waiting.some(([lease]) => lease === asker.lease)) this.#leave()
    this.#wake()
  }

  /** The setup is over. */
  end(): void {
    this.#over = true
    this.#leave()
  }

  #leave(): void {
    const asker = this.#asker
    if (asker === undefined) return
    this.#asker = undefined
    asker.leave()
    this.#blobs.leave(asker)
    this.#requests.end(asker, asker.signal.reason)
  }

  /** Waits for a task to ask on behalf of: without one, the setup is not needed. */
  async #next(): Promise<WaitingTask> {
    while (this.#asker === undefined) {
      const [first] = this.#waiting
      if (first !== undefined) this.#asker = new WaitingTask(first[0])
      else
        await new Promise<void>((resolve) => {
          const wakeOthers = this.#wake
          this.#wake = () => {
            wakeOthers()
            resolve()
          }
        })
    }
    return this.#asker
  }
}
