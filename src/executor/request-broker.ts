import { whyTooManyKeys } from '../protocol/count-keys.ts'
import {
  type Ask,
  BLOBS,
  MAX_OPEN_REQUESTS,
  OWN_SERVICES,
  type Packed,
  type WorkerMessage,
} from '../protocol/messages.ts'
import { Answers } from './answers.ts'
import { Clock } from './clock.ts'
import { OpenRequest, type Served } from './open-request.ts'
import { asError, notKept, oneWasAsked, unavailableIn, unknownService } from './request-errors.ts'
import type { Run } from './run.ts'
import { isStream, type Service } from './service.ts'
import type { Lease, LeaseAsks } from './task-entry.ts'
import { Turns } from './turns.ts'
import type { Speaker, WorkerHandle } from './worker-handle.ts'

interface Hooks {
  /** The task releases its slot while it waits for a request, and takes it back. It may wait for several requests. */
  waits(lease: Lease): void
  goesOn(lease: Lease): void
  /** If the task has two leases, ends the other one. */
  keepOnly(lease: Lease): void
  /** A task of this worker no longer waits for its turn at a service. */
  turnCame(worker: WorkerHandle): void
}

/**
 * Passes tasks' requests to the services of their run, and the answers back. A request is answered once or ends with its
 * lease. An answer is sent only while the lease that asked for it is live.
 */
export class RequestBroker {
  readonly #hooks: Hooks
  /** Services that every run has. */
  readonly #always: ReadonlyMap<string, Service>
  readonly #byRun = new WeakMap<Run, Map<string, Served>>()

  constructor(always: ReadonlyMap<string, Service>, hooks: Hooks) {
    this.#always = always
    this.#hooks = hooks
  }

  /** `by`: the channel of the worker that asks; the answer goes there. */
  receive(
    worker: WorkerHandle,
    message: Extract<WorkerMessage, { type: 'ask' | 'unask' | 'more' | 'hand-in' }>,
    by: Speaker,
  ): void {
    const lease = worker.leases.get(message.lease)
    // The lease is over because its task was cancelled; the worker is told so.
    if (!lease) return
    // An agent's `setup` asks for blobs under the lease of a task that has not started.
    if (message.type === 'ask' && message.service !== BLOBS) lease.started = true
    if (message.type === 'ask') return this.#open(lease, message, by)
    const request = lease.asks?.open.get(message.request)
    if (!request) return
    switch (message.type) {
      case 'unask':
        return this.#close(request)
      case 'more':
        return request.more(message.parts)
      case 'hand-in':
        return this.#handIn(request, message.value)
      default:
        message satisfies never
    }
  }

  /** The lease is over, and with it all its requests. */
  drop(lease: Lease): void {
    const { asks } = lease
    if (asks === undefined) return
    lease.asks = undefined
    const left = new Set<OpenRequest['turns']>()
    for (const request of asks.open.values()) {
      request.end()
      this.#unqueue(request, asks)
      request.turns.remove(request)
      left.add(request.turns)
    }
    // Only after all were removed: otherwise requests of this lease that still wait would get the free turns.
    for (const turns of left) turns.next()
  }

  #open(lease: Lease, ask: Ask, speaker: Speaker): void {
    const served = this.#served(lease.entry.run, ask.service)
    const asks: LeaseAsks = lease.asks ?? { open: new Map(), asked: new Map(), clock: new Clock(), queued: 0 }
    if (asks.open.has(ask.request)) throw new RangeError(`two requests with the number ${ask.request}`)
    if (served === undefined)
      return say({ speaker, lease, id: ask.request }, false, true, unknownService(ask.service, this.#names(lease)))
    const { service } = served
    checkKeys(ask.body)
    service.check(ask.body)
    if (!service.unlimited && limited(asks.open, speaker) >= MAX_OPEN_REQUESTS)
      throw new RangeError(`more than ${MAX_OPEN_REQUESTS} open requests of one task`)
    const request = new OpenRequest(lease, ask, served, speaker)
    asks.open.set(request.id, request)
    lease.asks = asks
    if (service.once || service.durable || ask.kind === 'own') {
      lease.entry.asksOnce = true
      this.#hooks.keepOnly(lease)
    }
    if (ask.slot === 'give') this.#hooks.waits(lease)
    if (ask.clock === 'stands') asks.clock.stop()
    if (this.#isKnown(request)) return
    served.turns.add(request)
    if (!request.served) this.#queue(request, asks)
  }

  #queue(request: OpenRequest, asks: LeaseAsks): void {
    request.queued = true
    if (asks.queued++ === 0) request.lease.worker.queuing++
  }

  /** A service waits while it serves a request. The task is treated as if it waited for its turn. */
  #onWaiting(request: OpenRequest, isWaiting: boolean): void {
    if (!request.isOpen || request.queued === isWaiting) return
    const { lease, speaker, id, ask } = request
    const asks = lease.asks!
    if (isWaiting) this.#queue(request, asks)
    else this.#unqueue(request, asks)
    // A request with `clock: 'stands'` keeps the clock stopped until the answer is there.
    if (ask.clock === 'stands') return
    request.stands = isWaiting
    if (isWaiting) asks.clock.stop()
    else asks.clock.go()
    speaker.post({ type: 'clock', request: id, stands: isWaiting }, 0, lease.id)
  }

  #unqueue(request: OpenRequest, asks: LeaseAsks): void {
    if (!request.queued) return
    request.queued = false
    if (--asks.queued > 0) return
    const { worker } = request.lease
    worker.queuing--
    this.#hooks.turnCame(worker)
  }

  /** True: an interrupted run of the same attempt has left an answer, which is given again. */
  #isKnown(request: OpenRequest): boolean {
    const { lease, ask, service } = request
    if (!service.durable && ask.kind !== 'own') return false
    const answers = Answers.of(lease)
    request.key = answers.keyOf(lease, ask)
    return answers.give(request.key, (value) => this.#finish(request, true, value))
  }

  #serve(request: OpenRequest): void {
    const { lease, ask, service } = request
    request.served = true
    this.#unqueue(request, lease.asks!)
    if (ask.kind === 'own') return request.speaker.post({ type: 'yours', request: request.id }, 0, lease.id)
    let answer: ReturnType<Service['ask']>
    try {
      answer = service.ask(request)
    } catch (error) {
      return this.#failed(request, error)
    }
    if (isStream(answer)) void this.#stream(request, answer)
    else
      answer.then(
        (value) => this.#answered(request, value),
        (error: unknown) => this.#failed(request, error),
      )
  }

  #answered(request: OpenRequest, value: Packed): void {
    const { lease, ask, key } = request
    if (!request.isOpen) return
    const finish = () => this.#finish(request, true, value)
    if (key) Answers.of(lease).keep(lease, ask, key, value, finish)
    else finish()
  }

  #handIn(request: OpenRequest, value: Packed): void {
    if (request.ask.kind !== 'own') throw new TypeError('a result without a request')
    checkKeys(value)
    this.#answered(request, value)
  }

  async #stream(request: OpenRequest, parts: AsyncIterable<Packed>): Promise<void> {
    const { ask, service } = request
    const iterator = parts[Symbol.asyncIterator]()
    try {
      if (ask.kind !== 'parts') throw oneWasAsked(ask.service)
      if (service.durable) throw notKept(ask.service)
      for (;;) {
        await request.room()
        const { done, value } = await iterator.next()
        if (!request.isOpen) break
        if (done) return this.#last(request, true, undefined)
        say(request, true, false, value)
      }
    } catch (error) {
      this.#failed(request, error)
    } finally {
      // If the stream is left early, this runs its `finally` blocks; their errors are ignored.
      void Promise.resolve(iterator.return?.()).catch(() => {})
    }
  }

  #failed(request: OpenRequest, error: unknown): void {
    request.lease.unavailable ??= unavailableIn(error)
    this.#finish(request, false, asError(error, request.ask.service))
  }

  /** The whole answer, or the error. A request for a stream gets a stream of one part. */
  #finish(request: OpenRequest, ok: boolean, value: Packed): void {
    if (!request.isOpen) return
    if (!ok || request.ask.kind !== 'parts') return this.#last(request, ok, value)
    say(request, true, false, value)
    this.#last(request, true, undefined)
  }

  #last(request: OpenRequest, ok: boolean, value: Packed): void {
    say(request, ok, true, value)
    this.#close(request)
  }

  #close(request: OpenRequest): void {
    const { lease, ask } = request
    const asks = lease.asks!
    const { open, clock } = asks
    open.delete(request.id)
    request.end()
    this.#unqueue(request, asks)
    if (ask.slot === 'give') this.#hooks.goesOn(lease)
    if (request.stands) clock.go()
    request.turns.remove(request)
    request.turns.next()
  }

  #served(run: Run, name: string): Served | undefined {
    let services = this.#byRun.get(run)
    if (services === undefined) this.#byRun.set(run, (services = new Map()))
    let served = services.get(name)
    const service = this.#always.get(name) ?? run.options.services?.get(name)
    if (served === undefined && service !== undefined) {
      served = {
        service,
        turns: new Turns(service.atOnce, (request: OpenRequest) => this.#serve(request)),
        onWaiting: (request, isWaiting) => this.#onWaiting(request, isWaiting),
      }
      services.set(name, served)
    }
    return served
  }

  #names({ entry }: Lease): string[] {
    return [...(entry.run.options.services?.keys() ?? [])].filter((name) => !name.startsWith(OWN_SERVICES))
  }
}

/** Sends the answers of one task in order. */
function say(
  { speaker, lease, id }: Pick<OpenRequest, 'speaker' | 'lease' | 'id'>,
  ok: boolean,
  last: boolean,
  value: Packed,
): void {
  speaker.postSoon({ type: 'answer', request: id, ok, last, value }, sizeOf(value), lease.id)
}

/** Each channel of a worker has a limit of its own: it does not know how many requests the other has open. */
function limited(requests: ReadonlyMap<number, OpenRequest>, by: Speaker): number {
  let count = 0
  for (const { service, speaker } of requests.values()) if (speaker === by && !service.unlimited) count++
  return count
}

const sizeOf = (value: Packed) => (value instanceof Uint8Array || value instanceof String ? value.length : 64)

/** Workers of ours check it before they ask. */
function checkKeys(value: Packed): void {
  const tooMany = whyTooManyKeys(value)
  if (tooMany !== undefined) throw new RangeError(tooMany)
}
