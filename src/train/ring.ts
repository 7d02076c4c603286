/** A queue with access to every index in constant time. */
export class Ring<T> {
  #items: (T | undefined)[] = new Array(16)
  #head = 0
  #length = 0

  get length(): number {
    return this.#length
  }

  /** Index 0 is the oldest item. */
  at(index: number): T | undefined {
    return index < this.#length ? this.#items[this.#slot(index)] : undefined
  }

  push(item: T): void {
    if (this.#length === this.#items.length) this.#grow()
    this.#items[this.#slot(this.#length++)] = item
  }

  shift(): T | undefined {
    if (this.#length === 0) return undefined
    const item = this.#items[this.#head]
    this.#items[this.#head] = undefined
    this.#head = this.#slot(1)
    this.#length--
    return item
  }

  /** The capacity is a power of two. */
  #slot(index: number): number {
    return (this.#head + index) & (this.#items.length - 1)
  }

  /** Doubles the capacity, so that pushing takes amortized constant time. */
  #grow(): void {
    const items = new Array<T | undefined>(this.#items.length * 2)
    for (let index = 0; index < this.#length; index++) items[index] = this.at(index)
    this.#items = items
    this.#head = 0
  }
}
