/** A queue in which every place is reached in constant time. */
export class Ring<T> {
  #items: (T | undefined)[] = new Array(16)
  #head = 0
  #length = 0

  get length(): number {
    return this.#length
  }

  /** From 0, the oldest. */
  at(place: number): T | undefined {
    return place < this.#length ? this.#items[this.#slot(place)] : undefined
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

  /** Its size is a power of two. */
  #slot(place: number): number {
    return (this.#head + place) & (this.#items.length - 1)
  }

  /** Twice the size, so that the copies cost each item a constant. */
  #grow(): void {
    const items = new Array<T | undefined>(this.#items.length * 2)
    for (let place = 0; place < this.#length; place++) items[place] = this.at(place)
    this.#items = items
    this.#head = 0
  }
}
