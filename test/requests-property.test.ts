import fc from 'fast-check'
import { expect, it } from 'vitest'
import type { Ask, DriverMessage, TaskItem } from '../src/protocol/messages.ts'
import { seeded } from '../src/random.ts'
import { userServices } from '../src/runners/user-services.ts'
import type { ServiceContext } from '../src/services.ts'
import { runScripted, type ScriptedWorker } from './scripted-worker.ts'

/** Requests of workers that ask, take back, die and fall silent at random: each is answered once, or ended with its lease. */

const ticks = async (count: number) => {
  for (let i = 0; i < count; i++) await new Promise((resolve) => setImmediate(resolve))
}

/** Services of every kind, and what they have under way. */
function servicesFor(random: () => number) {
  const underWay = new Set<AbortSignal>()
  const during = async <T>(signal: AbortSignal, work: () => Promise<T>): Promise<T> => {
    underWay.add(signal)
    const aborted = new Promise<never>((_, reject) =>
      signal.addEventListener('abort', () => reject(signal.reason), { once: true }),
    )
    aborted.catch(() => {})
    try {
      return await Promise.race([work(), aborted])
    } finally {
      underWay.delete(signal)
    }
  }
  const later = async <T>(value: T): Promise<T> => {
    await ticks(Math.floor(random() * 20))
    return value
  }
  const services = userServices({
    quick: (question) => question,
    slow: (question, { signal }) => during(signal, () => later(question)),
    fails: (_, { signal }) => during(signal, () => later(0).then(() => Promise.reject(new Error('no')))),
    never: (_, { signal }) => during(signal, () => new Promise(() => {})),
    few: { atOnce: 2, answer: (question, { signal }: ServiceContext) => during(signal, () => later(question)) },
    counts: { durable: true, answer: (question, { signal }: ServiceContext) => during(signal, () => later(question)) },
    parts: async function* (count: number, { signal }) {
      underWay.add(signal)
      try {
        for (let i = 0; i < count; i++) yield await later(i)
      } finally {
        underWay.delete(signal)
      }
    },
  })!
  return { services, underWay }
}

interface Asked {
  readonly task: RandomTask
  readonly service: string
  parts: number
  credit: number
  closed: boolean
}

const AWAITED = ['quick', 'slow', 'fails', 'few', 'counts', 'parts'] as const

/** A task of a worker that does what chance says. */
class RandomTask {
  readonly lease: number
  readonly item: TaskItem
  readonly #worker: RandomWorker
  #left: number

  constructor(worker: RandomWorker, item: TaskItem) {
    this.#worker = worker
    this.item = item
    this.lease = item[0]
    this.#left = Math.floor(worker.random() * 6)
  }

  goOn(): void {
    const { random } = this.#worker
    if (this.#worker.dead) return
    if (random() < 0.02) return this.#worker.die()
    if (this.#left-- <= 0) return this.#worker.finish(this)
    if (random() < 0.3) {
      // Not waited for: it ends with the task, or is taken back.
      const number = this.#worker.ask(this, random() < 0.5 ? 'never' : 'slow', false)
      if (random() < 0.5) this.#worker.unask(this, number)
      return this.goOn()
    }
    this.#worker.ask(this, AWAITED[Math.floor(random() * AWAITED.length)]!)
  }
}

class RandomWorker {
  readonly random: () => number
  readonly asked = new Map<number, Asked>()
  readonly #worker: ScriptedWorker
  readonly #wrong: string[]
  readonly #awaited = new Set<number>()
  dead = false
  #next = 1

  constructor(worker: ScriptedWorker, random: () => number, wrong: string[]) {
    this.#worker = worker
    this.random = random
    this.#wrong = wrong
  }

  receive(message: DriverMessage): void {
    if (this.dead) return
    if (message.type === 'run')
      for (const item of message.tasks) {
        if (message.careful) this.#worker.say({ type: 'started', leases: [item[0]] })
        setImmediate(() => new RandomTask(this, item).goOn())
      }
    if (message.type === 'answer') this.#answered(message)
  }

  ask(task: RandomTask, service: string, awaited = true): number {
    const request = this.#next++
    const parts = service === 'parts' ? Math.floor(this.random() * 60) : 0
    this.asked.set(request, { task, service, parts, credit: 0, closed: false })
    if (awaited) this.#awaited.add(request)
    const ask: Ask = {
      ...{ type: 'ask', request, lease: task.lease, service },
      kind: service === 'parts' ? 'parts' : 'one',
      slot: this.random() < 0.3 ? 'give' : 'keep',
      clock: this.random() < 0.5 ? 'runs' : 'stands',
      body: service === 'parts' ? parts : request,
    }
    this.#worker.say(ask)
    return request
  }

  unask(task: RandomTask, request: number): void {
    this.asked.get(request)!.closed = true
    this.#worker.say({ type: 'unask', request, lease: task.lease })
  }

  finish(task: RandomTask): void {
    for (const asked of this.asked.values()) if (asked.task === task) asked.closed = true
    this.#worker.answer(task.item, 'ok')
  }

  die(): void {
    this.dead = true
    this.#worker.die()
  }

  #answered({ request, ok, last, value }: Extract<DriverMessage, { type: 'answer' }>): void {
    const asked = this.asked.get(request)
    if (!asked) return void this.#wrong.push(`an answer to request ${request}, which nobody made`)
    // It may have been on its way when the request was taken back.
    if (asked.closed) return
    const { service, task } = asked
    if (!last) {
      if (service !== 'parts' || value !== asked.credit) this.#wrong.push(`part ${String(value)} of '${service}'`)
      asked.credit++
      if (asked.credit % 8 === 0) this.#worker.say({ type: 'more', request, lease: task.lease, parts: 8 })
      // Whoever has enough leaves.
      if (this.random() < 0.02) {
        this.unask(task, request)
        this.#awaited.delete(request)
        setImmediate(() => task.goOn())
      }
      return
    }
    asked.closed = true
    if (ok !== (service !== 'fails')) this.#wrong.push(`'${service}' answered ${ok}`)
    if (service === 'parts' && asked.credit !== asked.parts) this.#wrong.push(`${asked.credit} parts of ${asked.parts}`)
    if (ok && !['parts', 'fails'].includes(service) && value !== request)
      if (service !== 'counts')
        // An answer that counts may be that of an earlier run of the same attempt.
        this.#wrong.push(`'${service}' answered ${String(value)} to ${request}`)
    if (this.#awaited.delete(request)) task.goOn()
  }
}

it('every request is answered once or ended, and nothing is left behind', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.integer(),
      fc.integer({ min: 1, max: 4 }),
      fc.integer({ min: 1, max: 8 }),
      fc.integer({ min: 1, max: 30 }),
      async (seed, workers, concurrency, tasks) => {
        const random = seeded(seed >>> 0)
        const wrong: string[] = []
        const { services, underWay } = servicesFor(random)
        const byLink = new Map<ScriptedWorker, RandomWorker>()
        const ids = Array.from({ length: tasks }, (_, i) => `t${i}`)
        const responses = await runScripted(
          ids,
          (message, link) => {
            let worker = byLink.get(link)
            if (worker === undefined) byLink.set(link, (worker = new RandomWorker(link, random, wrong)))
            worker.receive(message)
          },
          { workers, concurrency, maxAttempts: 20, services },
        )
        expect([...responses.keys()].toSorted()).toEqual(ids.toSorted())
        for (const { status } of responses.values()) expect(['success', 'crashed']).toContain(status)
        await ticks(50)
        expect(wrong).toEqual([])
        expect(underWay.size).toBe(0)
      },
    ),
    { numRuns: 300, timeout: 10_000, interruptAfterTimeLimit: 40_000 },
  )
}, 90_000)
