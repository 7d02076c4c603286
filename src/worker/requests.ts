import { ManyworldsError } from '../errors.ts'
import type { Channel } from '../protocol/channel.ts'
import {
  type Ask,
  type DriverMessage,
  MAX_OPEN_REQUESTS,
  type Packed,
  STREAM_PARTS,
  type WorkerMessage,
} from '../protocol/messages.ts'
import { unpack } from '../protocol/pack.ts'
import type { Asker } from './asker.ts'
import { Asks } from './asks.ts'
import type { TaskContext } from './context.ts'
import { StreamParts } from './stream-parts.ts'
import type { Waiting } from './waiting.ts'

/** The default `limitMs` of requests that stop the task's clock. */
export const DEFAULT_LIMIT_MS = 600_000
/** The longest time that a timer can wait, 24 days. A longer limit is treated as none. */
const MAX_TIMER_MS = 2 ** 31 - 1

type Answered = Extract<DriverMessage, { type: 'answer' }>

/** A request of a task, and how the task waits. */
export interface Asking extends Pick<Ask, 'service' | 'slot' | 'clock' | 'kind'> {
  readonly body: Packed
  readonly size: number
  /** The request fails after this time. Infinity: only the task's own timeout ends it. */
  readonly limitMs: number
  readonly signal: AbortSignal | undefined
  /** It does not count for the limit of open requests per task. */
  readonly unlimited?: boolean
  /** How long the service may stop the task's clock. Default: `limitMs`. */
  readonly standMs?: number
}

/** Receives the answer. `done` or `failed` is called once, or neither if the task has ended. */
interface Waiter {
  part?(value: unknown): void
  yours?(): void
  done(value: unknown): void
  failed(error: unknown): void
}

export interface OpenAsk {
  readonly number: number
  readonly task: Asker
  readonly asking: Asking
  readonly waiter: Waiter
  sent: boolean
  /** The service has stopped the task's clock. */
  stands: boolean
  timer: NodeJS.Timeout | undefined
  readonly onAbort: () => void
}

/** The open requests of this worker's tasks and setups. */
export class Requests {
  readonly #channel: Channel<WorkerMessage, DriverMessage>
  readonly #waiting: Waiting
  readonly #flush: () => void
  readonly #open = new Map<number, OpenAsk>()
  /** Even numbers; the side thread uses odd ones. */
  #next = 2

  constructor(channel: Channel<WorkerMessage, DriverMessage>, waiting: Waiting, flush: () => void) {
    this.#channel = channel
    this.#waiting = waiting
    this.#flush = flush
  }

  /** Asks for one answer. */
  ask(task: Asker, asking: Asking): Promise<unknown> {
    return new Promise((done, failed) => this.#begin(task, asking, { done, failed }))
  }

  /** Asks for an answer in parts. */
  stream(task: Asker, asking: Asking): AsyncIterableIterator<unknown> {
    let number = 0
    const parts = new StreamParts(STREAM_PARTS / 2, {
      taken: (count) => {
        if (this.#open.has(number))
          this.#channel.post({ type: 'more', request: number, lease: task.lease, parts: count }, 0, task.lease)
      },
      left: () => this.#unask(number),
    })
    number = this.#begin(task, asking, parts)
    return parts
  }

  /** The stored result; if there is none, calls `make`, has its result stored and returns that. */
  once(
    task: TaskContext,
    asking: Asking,
    make: (request: number) => Promise<{ body: Packed; size: number }>,
  ): Promise<unknown> {
    return new Promise((done, failed) => {
      const number = this.#begin(task, asking, {
        done,
        failed,
        yours: () =>
          void make(number).then(
            ({ body: value, size }) => {
              if (this.#open.has(number))
                this.#channel.post({ type: 'hand-in', request: number, lease: task.lease, value }, size, task.lease)
            },
            (error: unknown) => {
              this.#unask(number)
              failed(error)
            },
          ),
      })
    })
  }

  /** Stops the task's clock while this worker does something for it. */
  async stand<Result>(task: TaskContext, work: Promise<Result>): Promise<Result> {
    const asks = (task.asks ??= new Asks())
    this.#waiting.begin(task, asks, STANDING)
    try {
      return await work
    } finally {
      this.#waiting.end(task, asks, STANDING, nothing, nothing)
    }
  }

  onAnswer({ request, ok, last, value }: Answered): void {
    const ask = this.#open.get(request)
    if (!ask) return
    if (!last) return ask.waiter.part?.(unpack(value))
    this.#close(ask, () => {
      if (ok) return ask.waiter.done(unpack(value))
      const { code, message } = unpack(value) as { code: ManyworldsError['code']; message: string }
      ask.waiter.failed(new ManyworldsError(code, message))
    })
  }

  onYours(request: number): void {
    this.#open.get(request)?.waiter.yours?.()
  }

  /** The service begins or stops waiting. */
  onClock(request: number, stands: boolean): void {
    const ask = this.#open.get(request)
    const task = ask?.task.running
    if (!ask || !task || ask.stands === stands) return
    ask.stands = stands
    const { asking } = ask
    if (stands) this.#waiting.stopClock(task, task.asks!, asking.standMs ?? asking.limitMs)
    else this.#waiting.startClock(task, task.asks!)
  }

  /**
   * The task is over, and so are its requests. `reason`: the task timed out or was cancelled, and its requests fail with this
   * error. Without a reason the task has ended by itself, and no code waits for them.
   */
  end(task: Asker, reason: Error | undefined): void {
    const { asks } = task
    if (asks === undefined) return
    asks.waiting.drain()
    for (const ask of asks.open) {
      this.#forget(ask)
      if (reason) ask.waiter.failed(reason)
    }
    asks.open.clear()
    if (task.running) this.#waiting.leave(task.running, reason)
  }

  #begin(task: Asker, asking: Asking, waiter: Waiter): number {
    const { signal, limitMs } = asking
    if (task.settled) {
      waiter.failed(task.whyOver)
      return 0
    }
    if (signal?.aborted) {
      waiter.failed(signal.reason)
      return 0
    }
    const number = this.#next
    this.#next += 2
    const onAbort = () => this.#fail(ask, signal!.reason)
    const ask: OpenAsk = { number, task, asking, waiter, sent: false, stands: false, timer: undefined, onAbort }
    this.#open.set(number, ask)
    const asks = (task.asks ??= new Asks())
    asks.open.add(ask)
    signal?.addEventListener('abort', onAbort, { once: true })
    if (limitMs <= MAX_TIMER_MS) ask.timer = setTimeout(() => this.#fail(ask, tooLate(asking)), limitMs)
    if (asking.unlimited || asks.sent < MAX_OPEN_REQUESTS) this.#send(ask)
    else asks.waiting.push(ask)
    if (task.running) this.#waiting.begin(task.running, asks, asking)
    return number
  }

  #send(ask: OpenAsk): void {
    const { number, task, asking } = ask
    const { lease } = task
    const { service, slot, clock, kind, body, size, unlimited } = asking
    ask.sent = true
    if (!unlimited) task.asks!.sent++
    // Send the steps that the task recorded before this request first.
    this.#flush()
    this.#channel.postSoon({ type: 'ask', request: number, lease, service, kind, slot, clock, body }, size, lease)
  }

  #fail(ask: OpenAsk, error: unknown): void {
    if (!this.#open.has(ask.number)) return
    this.#tellDriver(ask)
    this.#close(ask, () => ask.waiter.failed(error))
  }

  #unask(number: number): void {
    const ask = this.#open.get(number)
    if (!ask) return
    this.#tellDriver(ask)
    this.#close(ask, () => {})
  }

  #tellDriver({ sent, number, task }: OpenAsk): void {
    if (sent) this.#channel.post({ type: 'unask', request: number, lease: task.lease }, 0, task.lease)
  }

  /** The request is over; its task continues as soon as it has a slot. */
  #close(ask: OpenAsk, goOn: () => void): void {
    const { task, asking } = ask
    const asks = task.asks!
    this.#forget(ask)
    asks.open.delete(ask)
    if (ask.sent && !asking.unlimited) asks.sent--
    if (ask.stands && task.running) this.#waiting.startClock(task.running, asks)
    while (asks.sent < MAX_OPEN_REQUESTS && asks.waiting.length > 0) {
      const next = asks.waiting.shift()!
      if (this.#open.has(next.number)) this.#send(next)
    }
    if (task.running) this.#waiting.end(task.running, asks, asking, goOn, (reason) => ask.waiter.failed(reason))
    else goOn()
  }

  #forget({ number, timer, asking, onAbort }: OpenAsk): void {
    this.#open.delete(number)
    clearTimeout(timer)
    asking.signal?.removeEventListener('abort', onAbort)
  }
}

/** The wait settings for work that the worker itself does for a task. */
const STANDING = { slot: 'keep', clock: 'stands', limitMs: DEFAULT_LIMIT_MS } as const
const nothing = () => {}

const tooLate = ({ service, limitMs }: Asking) =>
  new ManyworldsError(
    'REQUEST_TIMEOUT',
    `service '${service}' has not answered within ${limitMs} ms; see what it waits for, or give the request a larger limitMs`,
  )
