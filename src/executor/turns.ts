/** A request and its requester. */
export interface Waiting<Who> {
  readonly by: Who
}

/** Serves a limited number of requests at once. Requesters take turns, one request each. */
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

  /** Requests that are being served or wait. */
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

  /** The request is over. Call `next` afterwards, once for all requests that end together. */
  remove(request: Request): void {
    if (this.#served.delete(request)) return
    const queue = this.#queues.get(request.by)
    const at = queue?.indexOf(request) ?? -1
    if (at < 0) return
    queue!.splice(at, 1)
    if (queue!.length === 0) this.#queues.delete(request.by)
  }

  /** Serves the next requests, as far as there is room. */
  next(): void {
    // A request may end while it is served, and call this again. A loop serves the next one, so that the stack does not grow.
    if (this.#serving) return
    this.#serving = true
    try {
      while (this.#served.size < this.#atOnce) {
        const [first] = this.#queues
        if (first === undefined) break
        const [who, queue] = first
        const request = queue.shift()!
        // If the requester has more, it goes to the end of the line.
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
