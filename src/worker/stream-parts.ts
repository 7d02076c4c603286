interface Hooks {
  /** Called with the number of parts taken since the last call. */
  taken(parts: number): void
  /** The task left its loop over the parts. */
  left(): void
}

/** The parts of a streamed answer, as an async iterator. */
export class StreamParts implements AsyncIterableIterator<unknown> {
  readonly #every: number
  readonly #hooks: Hooks
  readonly #there: unknown[] = []
  readonly #waiting: PromiseWithResolvers<IteratorResult<unknown>>[] = []
  #end: { readonly error?: unknown } | undefined
  #taken = 0

  /** `every`: `taken` is called after this many parts. */
  constructor(every: number, hooks: Hooks) {
    this.#every = every
    this.#hooks = hooks
  }

  [Symbol.asyncIterator](): this {
    return this
  }

  part(value: unknown): void {
    const first = this.#waiting.shift()
    if (!first) return void this.#there.push(value)
    first.resolve({ done: false, value })
    this.#take()
  }

  done(): void {
    this.#finish({})
  }

  failed(error: unknown): void {
    this.#finish({ error })
  }

  next(): Promise<IteratorResult<unknown>> {
    if (this.#there.length > 0) {
      const value = this.#there.shift()
      this.#take()
      return Promise.resolve({ done: false, value })
    }
    if (this.#end) {
      const { error } = this.#end
      const failed = 'error' in this.#end
      this.#end = {}
      return failed ? Promise.reject(error) : Promise.resolve({ done: true, value: undefined })
    }
    const next = Promise.withResolvers<IteratorResult<unknown>>()
    this.#waiting.push(next)
    return next.promise
  }

  return(): Promise<IteratorResult<unknown>> {
    this.#there.length = 0
    if (!this.#end) this.#hooks.left()
    this.#finish({})
    return Promise.resolve({ done: true, value: undefined })
  }

  #take(): void {
    if (++this.#taken < this.#every) return
    const taken = this.#taken
    this.#taken = 0
    this.#hooks.taken(taken)
  }

  #finish(end: { readonly error?: unknown }): void {
    if (this.#end) return
    this.#end = end
    const [first, ...others] = this.#waiting.splice(0)
    if (!first) return
    if ('error' in end) first.reject(end.error)
    else first.resolve({ done: true, value: undefined })
    this.#end = {}
    for (const other of others) other.resolve({ done: true, value: undefined })
  }
}
