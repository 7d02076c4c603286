/** An actor that exists or is being started, and so must fetch later additions. */
export interface Receiver {
  readonly worker: number
  /** Resolves when it is gone. */
  readonly gone: Promise<unknown>
}

/** Actors that were told to fetch from Ray's object store, by request number. */
export class Fetches {
  readonly #open = new Map<number, () => void>()
  #next = 1

  /** Resolves when the actor has fetched it, or is gone. */
  async ask({ gone }: Receiver, send: (request: number) => void): Promise<void> {
    const request = this.#next++
    const fetched = new Promise<void>((resolve) => this.#open.set(request, resolve))
    send(request)
    await Promise.race([fetched, gone])
    this.#open.delete(request)
  }

  answered(request: number): void {
    this.#open.get(request)?.()
  }
}
