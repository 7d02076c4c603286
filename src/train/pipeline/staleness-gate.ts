export interface GateOptions {
  /** How many updates may lie between the version that acts and the update that learns from it. 0: collect, then learn, in turns. */
  readonly maxStaleness: number
  /** Groups of a batch, unless `open` says otherwise. */
  readonly batch: number
  /** Updates that were made before. */
  readonly updates?: number
}

interface OpenBatch {
  readonly number: number
  readonly groups: number
  started: number
  done: boolean
}

/**
 * Says how far collection may run ahead of the learner. It has no clock and starts nothing, so what it promises can be tested in a simulation. How many groups run
 * at once is for the workers to say: they take the next one when they have room.
 *
 * Batches are opened, and consumed, in the order of their numbers, and batch n is what update n learns from. It is opened when at least n - maxStaleness updates
 * were made, so it cannot be older, however long its slowest episode takes. A group holds its place until its batch is consumed, also if it failed or taught nothing:
 * such a group makes its batch smaller, and blocks nobody. A batch is opened as late as possible, when all groups of those before it have started: then its
 * policy is as new as can be, and the oldest batch is never kept waiting by a younger one.
 */
export class StalenessGate {
  readonly #maxStaleness: number
  readonly #batch: number
  /** The oldest first. All groups of those before the last have started. */
  readonly #open: OpenBatch[] = []
  #updates: number

  constructor({ maxStaleness, batch, updates = 0 }: GateOptions) {
    this.#maxStaleness = maxStaleness
    this.#batch = batch
    this.#updates = updates
  }

  /** Updates that were made. */
  get updates(): number {
    return this.#updates
  }

  /** Groups that may start now, in batches that are open or may be opened. */
  get capacity(): number {
    return this.#unstarted + (this.#maxStaleness + 1 - this.#open.length) * this.#batch
  }

  /** The number of the batch that may be opened now; undefined: none. */
  get next(): number | undefined {
    const mayOpen = this.#unstarted === 0 && this.#open.length <= this.#maxStaleness
    return mayOpen ? this.#updates + this.#open.length : undefined
  }

  /** Opens the next batch. Its groups act with the policy of this moment. */
  open(groups: number = this.#batch): number {
    const number = this.next
    if (number === undefined || groups < 1)
      throw new Error(`no batch of ${groups} groups may be opened: ${this.#describe()}`)
    this.#open.push({ number, groups, started: 0, done: false })
    return number
  }

  /** The next group of the last batch starts. Returns the number of the batch. */
  start(): number {
    const batch = this.#open.at(-1)
    if (batch === undefined || batch.started === batch.groups)
      throw new Error(`no group may start: ${this.#describe()}`)
    batch.started++
    return batch.number
  }

  /** All groups of this batch have ended, however. */
  done(number: number): void {
    const batch = this.#open[number - this.#updates]
    if (batch === undefined || batch.done || batch.started < batch.groups)
      throw new Error(`batch ${number} cannot be done: ${this.#describe()}`)
    batch.done = true
  }

  /** The number of the batch that is to be learned from now: the oldest, if it is done. */
  get ready(): number | undefined {
    const [oldest] = this.#open
    return oldest?.done ? oldest.number : undefined
  }

  /** The batch that was ready has been learned from. Returns its number. */
  consume(): number {
    if (this.ready === undefined) throw new Error(`no batch is ready: ${this.#describe()}`)
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
