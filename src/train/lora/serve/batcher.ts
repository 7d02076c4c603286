import { setTimeout as sleep } from 'node:timers/promises'
import { Refusal } from './refusal.ts'

/** Requests that arrive together are batched: the first turn starts when no request arrived for this long, */
const GATHER_MS = 5
/** or after this long. One decoding step of a 135M model takes 150 ms. */
const MAX_GATHER_MS = 50

export interface Sent<Request> {
  readonly id: number
  readonly request: Request
}

export interface BatcherOptions<Request, Result> {
  /**
   * Adds requests to the running ones of a lane, drops others, and runs the lane for a while. Resolves to the results
   * of finished requests, by id. If it throws, all running requests of the lane are lost.
   */
  advance(lane: string, added: readonly Sent<Request>[], dropped: readonly number[]): Promise<Map<number, Result>>
  /** Whether this error means that the running requests of all lanes are lost. */
  isFatal(error: unknown): boolean
  /** The maximum number of concurrent requests, over all lanes. */
  readonly maxRequests: number
}

interface Job<Request, Result> {
  readonly id: number
  request: Request | undefined
  resolve(result: Result): void
  reject(error: unknown): void
}

class Lane<Request, Result> {
  readonly waiting = new Map<number, Job<Request, Result>>()
  readonly running = new Map<number, Job<Request, Result>>()
  readonly dropped: number[] = []

  get isIdle(): boolean {
    return this.waiting.size + this.running.size + this.dropped.length === 0
  }
}

/**
 * Batches requests that arrive one by one. There is a lane for each adapter, because only requests of the same adapter
 * can be computed together; lanes take turns. A request joins its lane at the next turn. `advance` is called once at a
 * time.
 */
export class Batcher<Request, Result> {
  readonly #options: BatcherOptions<Request, Result>
  /** The lane whose turn is next comes first. */
  readonly #lanes = new Map<string, Lane<Request, Result>>()
  readonly #preparing = new Set<Promise<unknown>>()
  #count = 0
  #size = 0
  #isRunning = false

  constructor(options: BatcherOptions<Request, Result>) {
    this.#options = options
  }

  /**
   * `prepare` makes the request; many can be prepared at the same time. `signal` is aborted when the client
   * disconnects.
   */
  async ask(lane: string, prepare: () => Promise<Request>, signal: AbortSignal): Promise<Result> {
    const { maxRequests } = this.#options
    if (this.#size >= maxRequests)
      throw new Refusal(429, `the limit of ${maxRequests} concurrent requests is reached; try again later`)
    this.#size++
    try {
      const preparing = prepare()
      this.#preparing.add(preparing)
      this.#start()
      const request = await preparing.finally(() => this.#preparing.delete(preparing))
      signal.throwIfAborted()
      return await this.#enter(lane, request, signal)
    } finally {
      this.#size--
    }
  }

  #enter(name: string, request: Request, signal: AbortSignal): Promise<Result> {
    const id = ++this.#count
    const lane = this.#lanes.get(name) ?? new Lane<Request, Result>()
    this.#lanes.set(name, lane)
    const result = new Promise<Result>((resolve, reject) => {
      lane.waiting.set(id, { id, request, resolve, reject })
      const leave = () => {
        lane.waiting.delete(id)
        if (lane.running.delete(id)) lane.dropped.push(id)
        reject(signal.reason)
      }
      signal.addEventListener('abort', leave, { once: true })
    })
    this.#start()
    return result
  }

  /** Rejects all waiting and running requests of one lane, or of all lanes. */
  fail(error: unknown, only?: string): void {
    for (const [name, lane] of this.#lanes)
      if (only === undefined || name === only) {
        this.#lanes.delete(name)
        for (const job of [...lane.waiting.values(), ...lane.running.values()]) job.reject(error)
      }
  }

  #start(): void {
    if (this.#isRunning) return
    this.#isRunning = true
    void this.#run().finally(() => {
      this.#isRunning = false
      // A request arrived while the loop ended.
      if (this.#lanes.size + this.#preparing.size > 0) this.#start()
    })
  }

  async #run(): Promise<void> {
    await this.#gather()
    while (true) {
      if (this.#preparing.size > 0) {
        await Promise.allSettled([...this.#preparing])
        // Lets the prepared requests enter their lanes first.
        await sleep(0)
      }
      const [first] = this.#lanes
      if (first === undefined) {
        if (this.#preparing.size === 0) return
        continue
      }
      const [name, lane] = first
      this.#lanes.delete(name)
      if (lane.isIdle) continue
      // Moves the lane to the end, so that the others come before its next turn.
      this.#lanes.set(name, lane)
      await this.#turn(name, lane)
    }
  }

  async #gather(): Promise<void> {
    const began = performance.now()
    let before: number
    do {
      before = this.#size
      await sleep(GATHER_MS)
    } while (this.#size > before && performance.now() - began < MAX_GATHER_MS)
  }

  async #turn(name: string, lane: Lane<Request, Result>): Promise<void> {
    const added = [...lane.waiting.values()].map(({ id, request }) => ({ id, request: request as Request }))
    for (const [id, job] of lane.waiting) lane.running.set(id, { ...job, request: undefined })
    lane.waiting.clear()
    try {
      const done = await this.#options.advance(name, added, lane.dropped.splice(0))
      for (const [id, result] of done) {
        lane.running.get(id)?.resolve(result)
        lane.running.delete(id)
      }
    } catch (error) {
      const isFatal = this.#options.isFatal(error)
      for (const other of isFatal ? this.#lanes.values() : [lane]) {
        for (const job of other.running.values()) job.reject(error)
        other.running.clear()
        other.dropped.length = 0
      }
    }
  }
}
