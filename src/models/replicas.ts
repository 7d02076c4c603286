import { HttpFailure, type HttpReply } from './http.ts'

/** How long a failed server is avoided, if there are others. */
const AVOID_MS = 10_000
/** Statuses with which a proxy reports that a server is down. */
const DOWN: readonly number[] = [502, 503, 504]

interface Replica {
  readonly url: string
  inFlight: number
  avoidUntil: number
}

/** Servers with the same model. */
export class Replicas {
  readonly #all: readonly Replica[]

  constructor(urls: readonly string[]) {
    this.#all = urls.map((url) => ({ url, inFlight: 0, avoidUntil: 0 }))
  }

  get urls(): string[] {
    return this.#all.map(({ url }) => url)
  }

  /**
   * Calls the server with the fewest calls in flight. A server that is down fails immediately and would always have the
   * fewest, so servers that failed recently come last.
   */
  async use(call: (url: string) => Promise<HttpReply>): Promise<HttpReply> {
    const replica = this.#next(performance.now())
    replica.inFlight++
    try {
      const reply = await call(replica.url)
      if (DOWN.includes(reply.status)) avoid(replica)
      return reply
    } catch (error) {
      if (error instanceof HttpFailure && !error.timedOut) avoid(replica)
      throw error
    } finally {
      replica.inFlight--
    }
  }

  #next(now: number): Replica {
    return this.#all.reduce((best, one) => {
      const [isAvoided, bestIsAvoided] = [one.avoidUntil > now, best.avoidUntil > now]
      if (isAvoided !== bestIsAvoided) return isAvoided ? best : one
      return one.inFlight < best.inFlight ? one : best
    })
  }
}

const avoid = (replica: Replica) => {
  replica.avoidUntil = performance.now() + AVOID_MS
}
