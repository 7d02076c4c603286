/** A request on behalf of somebody, who may have others. */
export interface Waiting<Who> {
  readonly by: Who
}

/**
 * Lets so many requests be served at once. Whoever has requests that wait takes turns with the others, one request each,
 * however many each of them has.
 */
export class Turns<Who, Request extends Waiting<Who>> {
  readonly #serve: (request: Request) => void
  readonly #queues = new Map<Who, Request[]>()
  readonly #served = new Set<Request>()
  readonly #atOnce: number
  #serving = false

  constructor(atOnce: number, serve: (request: Request) => void) {
    this.#atOnce = atOnce
    this.#serve = serve
  }

  /** Requests that are served or wait. */
  get size(): number {
    let size = this.#served.size
    for (const queue of this.#queues.values()) size += queue.length
    return size
  }

  add(request: Request): void {
    const queue = this.#queues.get(request.by)
    if (queue) queue.push(request)
    else this.#queues.set(request.by, [request])
    this.next()
  }

  /** It was served, or nobody waits for it any more. `next` has to follow, once for all that go together. */
  remove(request: Request): void {
    if (this.#served.delete(request)) return
    const queue = this.#queues.get(request.by)
    const at = queue?.indexOf(request) ?? -1
    if (at < 0) return
    queue!.splice(at, 1)
    if (queue!.length === 0) this.#queues.delete(request.by)
  }

  /** Serves those whose turn it is. */
  next(): void {
    // What is served may be over at once, and come here again: a loop, since a stack would have its limits.
    if (this.#serving) return
    this.#serving = true
    try {
      while (this.#served.size < this.#atOnce) {
        const [first] = this.#queues
        if (first === undefined) break
        const [who, queue] = first
        const request = queue.shift()!
        // Whoever has more goes to the end of the line.
        this.#queues.delete(who)
        if (queue.length > 0) this.#queues.set(who, queue)
        this.#served.add(request)
        this.#serve(request)
      }
    } finally {
      this.#serving = false
    }
  }
}
