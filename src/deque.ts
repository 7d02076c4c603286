/** A queue with constant-time access to both ends. */
export class Deque<T> {
  #items: T[] = []
  #head = 0

  get length(): number {
    return this.#items.length - this.#head
  }

  push(item: T): void {
    this.#items.push(item)
  }

  /** Puts items before all others, keeping their order. */
  unshift(items: readonly T[]): void {
    if (items.length > this.#head) {
      // Not spread into arguments: those of a call are limited to about 120,000.
      this.#items = items.concat(this.#head === 0 ? this.#items : this.#items.slice(this.#head))
      this.#head = 0
      return
    }
    this.#head -= items.length
    for (let at = 0; at < items.length; at++) this.#items[this.#head + at] = items[at]!
  }

  peek(): T | undefined {
    return this.#items[this.#head]
  }

  *[Symbol.iterator](): IterableIterator<T> {
    for (let at = this.#head; at < this.#items.length; at++) yield this.#items[at]!
  }

  shift(): T | undefined {
    if (this.#head === this.#items.length) return undefined
    const item = this.#items[this.#head]
    this.#items[this.#head++] = undefined as T
    // Release the memory of taken items from time to time; the cost is spread over many takes.
    if (this.#head === this.#items.length) {
      this.#items = []
      this.#head = 0
    } else if (this.#head > 1024 && this.#head * 2 > this.#items.length) {
      this.#items = this.#items.slice(this.#head)
      this.#head = 0
    }
    return item
  }

  /** Removes the first item that matches; false: none does. */
  remove(matches: (item: T) => boolean): boolean {
    const at = this.#items.findIndex((item, index) => index >= this.#head && matches(item))
    if (at < 0) return false
    this.#items.splice(at, 1)
    return true
  }

  /** Takes everything. */
  drain(): T[] {
    const items = this.#items.slice(this.#head)
    this.#items = []
    this.#head = 0
    return items
  }
}
