export interface GateOptions {
  /**
   * The maximum number of updates between the acting version and the update that trains on it. 0: collecting and
   * training alternate.
   */
  readonly maxStaleness: number
  /** Groups per batch, unless `open` is given another number. */
  readonly batch: number
  /** Updates made by earlier sessions. */
  readonly updates?: number
}

interface OpenBatch {
  readonly number: number
  readonly groups: number
  started: number
  done: boolean
}

/**
 * Decides how far collection may run ahead of the learner. It has no clock and starts nothing, so its guarantees can be tested in a simulation. How many
 * groups run at once is up to the workers: they take the next one when they have capacity.
 *
 * Batches are opened and consumed in order, and update n trains on batch n. Batch n is opened after at least n - maxStaleness updates, so it cannot be
 * staler, however long its slowest episode takes. A group counts until its batch is consumed, even if it failed or taught nothing: it makes its batch
 * smaller, but blocks nothing. A batch is opened as late as possible, when all groups of the earlier batches have started: then its policy is as recent
 * as possible, and a younger batch never delays the oldest one.
 */
export class StalenessGate {
  readonly #maxStaleness: number
  readonly #batch: number
  /** Oldest first. All groups of all batches but the last have started. */
  readonly #open: OpenBatch[] = []
  #updates: number

  constructor({ maxStaleness, batch, updates = 0 }: GateOptions) {
    this.#maxStaleness = maxStaleness
    this.#batch = batch
    this.#updates = updates
  }

  get updates(): number {
    return this.#updates
  }

  /** The number of groups that may start now, in batches that are open or may be opened. */
  get capacity(): number {
    return this.#unstarted + (this.#maxStaleness + 1 - this.#open.length) * this.#batch
  }

  /** The number of the batch that may be opened now; undefined if none. */
  get next(): number | undefined {
    const mayOpen = this.#unstarted === 0 && this.#open.length <= this.#maxStaleness
    return mayOpen ? this.#updates + this.#open.length : undefined
  }

  /** Opens the next batch. Its groups act with the current policy. */
  open(groups: number = this.#batch): number {
    const number = this.next
    if (number === undefined || groups < 1)
      throw new Error(`cannot open a batch of ${groups} groups: ${this.#describe()}`)
    this.#open.push({ number, groups, started: 0, done: false })
    return number
  }

  /** Starts the next group of the last batch. Returns the number of the batch. */
  start(): number {
    const batch = this.#open.at(-1)
    if (batch === undefined || batch.started === batch.groups)
      throw new Error(`cannot start a group: ${this.#describe()}`)
    batch.started++
    return batch.number
  }

  /** All groups of this batch have ended, successfully or not. */
  done(number: number): void {
    const batch = this.#open[number - this.#updates]
    if (batch === undefined || batch.done || batch.started < batch.groups)
      throw new Error(`cannot complete batch ${number}: ${this.#describe()}`)
    batch.done = true
  }

  /** The number of the batch to train on now: the oldest, if all its groups have ended. */
  get ready(): number | undefined {
    const [oldest] = this.#open
    return oldest?.done ? oldest.number : undefined
  }

  /** The ready batch was trained on. Returns its number. */
  consume(): number {
    if (this.ready === undefined) throw new Error(`cannot consume a batch, none is ready: ${this.#describe()}`)
    this.#open.shift()
    return this.#updates++
  }

  get #unstarted(): number {
    const last = this.#open.at(-1)
    return last === undefined ? 0 : last.groups - last.started
  }

  #describe(): string {
    const batches = this.#open.map(
      ({ number, groups, started, done }) => `${number}: ${started} of ${groups} started${done ? ', done' : ''}`,
    )
    return `${this.#updates} updates, open batches [${batches.join('; ')}]`
  }
}
