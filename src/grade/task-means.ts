/** One number per task, by the task's row. For 100,000 tasks, objects would take several times the memory. */
export class TaskNumbers {
  readonly #unset: number
  #values = new Float64Array(0)

  constructor(unset = 0) {
    this.#unset = unset
  }

  get(row: number): number {
    return this.#values[row] ?? this.#unset
  }

  set(row: number, value: number): void {
    if (row >= this.#values.length) this.#grow(row + 1)
    this.#values[row] = value
  }

  #grow(needed: number): void {
    const { length } = this.#values
    const grown = new Float64Array(Math.max(needed, 2 * length)).fill(this.#unset, length)
    grown.set(this.#values)
    this.#values = grown
  }
}

/** The mean of a figure over the rollouts of each task, by the task's row. */
export class TaskMeans {
  readonly #counts = new TaskNumbers()
  readonly #sums = new TaskNumbers()

  add(row: number, value: number): void {
    this.#counts.set(row, this.count(row) + 1)
    this.#sums.set(row, this.sum(row) + value)
  }

  /** How many rollouts have the figure. */
  count(row: number): number {
    return this.#counts.get(row)
  }

  sum(row: number): number {
    return this.#sums.get(row)
  }

  mean(row: number): number {
    return this.sum(row) / this.count(row)
  }
}
