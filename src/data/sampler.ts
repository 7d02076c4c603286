import { hash } from 'node:crypto'

interface Candidate<T> {
  readonly rank: string
  readonly place: number
  readonly item: T
}

/** Selects `limit` of the offered items: those whose ids, hashed with the seed, rank first. */
export class Sampler<T> {
  readonly #limit: number
  readonly #seed: number
  #kept: Candidate<T>[] = []
  /** The rank of the `limit`-th best item so far. Items with a higher rank cannot be selected. */
  #last: string | undefined
  #offered = 0

  constructor(limit: number, seed: number) {
    this.#limit = limit
    this.#seed = seed
  }

  /** The number of offered items. */
  get offered(): number {
    return this.#offered
  }

  offer(id: string, item: T): void {
    const place = this.#offered++
    const rank = hash('sha256', `sample\0${this.#seed}\0${id}`).slice(0, 32)
    if (this.#last !== undefined && rank > this.#last) return
    this.#kept.push({ rank, place, item })
    if (this.#kept.length >= 2 * this.#limit) this.#prune()
  }

  /** The selected items, in the order in which they were offered. */
  chosen(): T[] {
    this.#prune()
    return this.#kept.toSorted((a, b) => a.place - b.place).map(({ item }) => item)
  }

  #prune(): void {
    this.#kept.sort((a, b) => (a.rank < b.rank ? -1 : a.rank > b.rank ? 1 : a.place - b.place))
    if (this.#kept.length < this.#limit) return
    this.#kept.length = this.#limit
    this.#last = this.#kept.at(-1)!.rank
  }
}
