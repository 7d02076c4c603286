/** What waits its turn, on behalf of somebody. */
export interface Waiting<Who> {
  readonly by: Who
}

/** Lets so many be served at once. Those who wait for it take turns, one each, however much each of them asks for. */
export class Turns<Who, Request extends Waiting<Who>> {
  readonly #serve: (request: Request) => void
  readonly #queues = new Map<Who, Request[]>()
  readonly #served = new Set<Request>()
  readonly #atOnce: number

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
    this.#next()
  }

  /** It was served, or nobody waits for it any more. */
  done(request: Request): void {
    if (!this.#served.delete(request)) this.#forget(request)
    this.#next()
  }

  #next(): void {
    while (this.#served.size < this.#atOnce) {
      const [first] = this.#queues
      if (first === undefined) return
      const [who, queue] = first
      const request = queue.shift()!
      // Whoever has more goes to the end of the line.
      this.#queues.delete(who)
      if (queue.length > 0) this.#queues.set(who, queue)
      this.#served.add(request)
      this.#serve(request)
    }
  }

  #forget(request: Request): void {
    const queue = this.#queues.get(request.by)
    const at = queue?.indexOf(request) ?? -1
    if (at < 0) return
    queue!.splice(at, 1)
    if (queue!.length === 0) this.#queues.delete(request.by)
  }
}
