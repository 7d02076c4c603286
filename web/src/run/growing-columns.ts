const FIRST_ROOM = 1024

/** Columns of numbers, side by side, that grow. NaN stands for "no value". */
export class GrowingColumns<Name extends string> {
  readonly names: readonly Name[]
  #room = FIRST_ROOM
  #columns: Record<Name, Float64Array>
  count = 0

  constructor(names: readonly Name[]) {
    this.names = names
    this.#columns = Object.fromEntries(names.map((name) => [name, new Float64Array(FIRST_ROOM)])) as never
  }

  /** Valid until rows are added. Longer than `count`. */
  of(name: Name): Float64Array {
    return this.#columns[name]
  }

  /** Adds an empty row and returns its index. */
  add(): number {
    if (this.count === this.#room) this.#grow()
    for (const name of this.names) this.#columns[name][this.count] = Number.NaN
    return this.count++
  }

  #grow(): void {
    this.#room *= 2
    for (const name of this.names) {
      const column = new Float64Array(this.#room)
      column.set(this.#columns[name])
      this.#columns[name] = column
    }
  }
}
