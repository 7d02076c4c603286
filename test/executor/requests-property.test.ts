import fc from 'fast-check'
import { expect, it } from 'vitest'
import { type Ask, type DriverMessage, ONCE, OUTCOME, type TaskItem } from '../../src/protocol/messages.ts'
import { pack } from '../../src/protocol/pack.ts'
import { seeded } from '../../src/random.ts'
import { userServices } from '../../src/runners/user-services.ts'
import type { ServiceContext } from '../../src/services.ts'
import { ScriptedExecutor, type ScriptedWorker } from '../support/scripted-worker.ts'
import { share } from '../support/storm.ts'

/**
 * Requests of workers that ask with both voices, take back, hand in, die, fall silent and say what is out of date, while runs
 * are cancelled and frames take their time: each request is answered once, or ended with its lease.
 */

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
  readonly parts: number
  /** Asked by the side thread, which takes nothing back. */
  readonly aside: boolean
  seen: number
  /** Answered, taken back, or ended with its task. */
  closed: 'answered' | 'left' | undefined
}

const AWAITED = ['quick', 'slow', 'fails', 'few', 'counts', 'parts', ONCE] as const

/** A task of a worker that does what chance says. */
class RandomTask {
  readonly lease: number
  readonly item: TaskItem
  readonly #worker: RandomWorker
  #left: number
  over = false

  constructor(worker: RandomWorker, item: TaskItem) {
    this.#worker = worker
    this.item = item
    this.lease = item[0]
    this.#left = Math.floor(worker.random() * 6)
  }

  goOn(): void {
    const { random } = this.#worker
    if (this.#worker.dead || this.over) return
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
  readonly #asked = new Map<number, Asked>()
  readonly #tasks = new Map<number, RandomTask>()
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
    switch (message.type) {
      case 'run':
        for (const item of message.tasks) {
          if (message.careful) this.#worker.say({ type: 'started', leases: [item[0]] })
          const task = new RandomTask(this, item)
          this.#tasks.set(task.lease, task)
          setImmediate(() => task.goOn())
        }
        return
      case 'answer':
        return this.#answered(message)
      case 'yours':
        return this.#yours(message.request)
      case 'cancel':
        return this.#cancelled(message.lease)
      default:
    }
  }

  ask(task: RandomTask, service: string, awaited = true): number {
    const request = this.#next++
    const isStream = service === 'parts'
    const parts = isStream ? Math.floor(this.random() * 60) : 0
    const aside = this.random() < 0.3 && !isStream && service !== ONCE
    this.#asked.set(request, { task, service, parts, aside, seen: 0, closed: undefined })
    if (awaited) this.#awaited.add(request)
    const ask: Ask = {
      ...{ type: 'ask', request, lease: task.lease, service },
      kind: isStream ? 'parts' : service === ONCE ? 'own' : 'one',
      slot: this.random() < 0.3 ? 'give' : 'keep',
      clock: this.random() < 0.5 ? 'runs' : 'stands',
      body: isStream ? parts : request,
    }
    if (aside) this.#worker.sayAside(ask)
    else this.#worker.say(ask)
    return request
  }

  unask(task: RandomTask, request: number): void {
    const asked = this.#asked.get(request)!
    if (asked.aside) return
    asked.closed = 'left'
    this.#worker.say({ type: 'unask', request, lease: task.lease })
    this.#sayOutOfDate(task, request)
  }

  finish(task: RandomTask): void {
    this.#end(task)
    this.#worker.answer(task.item, 'ok')
    this.#sayOutOfDate(task, this.#next - 1)
  }

  die(): void {
    this.dead = true
    this.#worker.die()
  }

  #end(task: RandomTask): void {
    task.over = true
    this.#tasks.delete(task.lease)
    for (const asked of this.#asked.values()) if (asked.task === task) asked.closed ??= 'left'
  }

  /** Most notice that they are cancelled; some are past that, and some never do: those are ended. */
  #cancelled(lease: number): void {
    if (this.random() < 0.05) return this.die()
    this.#worker.say({ type: 'cancel-seen', lease })
    const task = this.#tasks.get(lease)
    if (!task) return
    this.#end(task)
    const error = { code: 'TASK_CANCELLED', name: 'AbortError', message: 'cancelled', stack: undefined }
    this.#worker.say({ type: 'done', records: [], outcomes: [[lease, OUTCOME.cancelled, pack(error), 1]] })
  }

  /** What was on its way when the request, or its task, was over. */
  #sayOutOfDate({ lease }: RandomTask, request: number): void {
    if (this.random() < 0.7) return
    this.#worker.say({ type: 'unask', request, lease })
    this.#worker.say({ type: 'more', request, lease, parts: 8 })
    this.#worker.say({ type: 'hand-in', request, lease, value: 1 })
  }

  #yours(request: number): void {
    const asked = this.#asked.get(request)!
    if (asked.service !== ONCE) return void this.#wrong.push(`'${asked.service}' is to be done by its task`)
    void ticks(Math.floor(this.random() * 10)).then(() => {
      if (this.dead || asked.closed) return
      this.#worker.say({ type: 'hand-in', request, lease: asked.task.lease, value: request })
    })
  }

  #answered({ request, ok, last, value }: Extract<DriverMessage, { type: 'answer' }>): void {
    const asked = this.#asked.get(request)
    if (!asked) return void this.#wrong.push(`an answer to request ${request}, which nobody made`)
    const { service, task } = asked
    if (asked.closed === 'answered') this.#wrong.push(`request ${request} to '${service}' is answered twice`)
    // It may have been on its way when the request was taken back.
    if (asked.closed) return
    if (!last) {
      if (service !== 'parts' || value !== asked.seen) this.#wrong.push(`part ${String(value)} of '${service}'`)
      asked.seen++
      if (asked.seen % 8 === 0) this.#worker.say({ type: 'more', request, lease: task.lease, parts: 8 })
      // Whoever has enough leaves.
      if (this.random() < 0.02) {
        this.unask(task, request)
        this.#awaited.delete(request)
        setImmediate(() => task.goOn())
      }
      return
    }
    asked.closed = 'answered'
    this.#checkAnswer(request, asked, ok, value)
    if (this.#awaited.delete(request)) task.goOn()
  }

  #checkAnswer(request: number, { service, seen, parts }: Asked, ok: boolean, value: unknown): void {
    if (ok !== (service !== 'fails')) this.#wrong.push(`'${service}' answered ${ok}`)
    if (service === 'parts' && seen !== parts) this.#wrong.push(`${seen} parts of ${parts}`)
    // An answer that counts may be that of an earlier run of the same attempt.
    if (['quick', 'slow', 'few'].includes(service) && value !== request)
      this.#wrong.push(`'${service}' answered ${String(value)} to ${request}`)
  }
}

it('every request is answered once or ended, and nothing is left behind', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.integer(),
      fc.record({
        workers: fc.integer({ min: 1, max: 4 }),
        concurrency: fc.integer({ min: 1, max: 8 }),
        tasks: fc.integer({ min: 1, max: 30 }),
        /** How long frames take at most. */
        turns: fc.integer({ min: 1, max: 12 }),
        cancelAfter: fc.option(fc.integer({ min: 0, max: 400 })),
      }),
      async (seed, { workers, concurrency, tasks, turns, cancelAfter }) => {
        const random = seeded(seed >>> 0)
        const wrong: string[] = []
        const { services, underWay } = servicesFor(random)
        const byLink = new Map<ScriptedWorker, RandomWorker>()
        const executor = new ScriptedExecutor(
          (message, link) => {
            let worker = byLink.get(link)
            if (worker === undefined) byLink.set(link, (worker = new RandomWorker(link, random, wrong)))
            worker.receive(message)
          },
          { workers, concurrency, maxAttempts: 20, services, delay: () => Math.floor(random() * turns) },
        )
        const ids = Array.from({ length: tasks }, (_, i) => `t${i}`)
        const abort = new AbortController()
        if (cancelAfter !== null) void ticks(cancelAfter).then(() => abort.abort())
        const allowed = cancelAfter === null ? ['success', 'crashed'] : ['success', 'crashed', 'cancelled']
        try {
          // In the second run a worker whose load was counted wrong, or a request that was left, would show.
          for (const signal of [abort.signal, undefined]) {
            const responses = await executor.run(ids, signal)
            expect([...responses.keys()].toSorted()).toEqual(ids.toSorted())
            for (const { status } of responses.values())
              expect(signal ? allowed : ['success', 'crashed']).toContain(status)
          }
          await ticks(50)
          expect(wrong).toEqual([])
          expect(underWay.size).toBe(0)
        } finally {
          await executor.shutdown()
        }
      },
    ),
    { numRuns: share(60, 600), timeout: 15_000, interruptAfterTimeLimit: 60_000 },
  )
}, 120_000)
