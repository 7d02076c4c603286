import assert from 'node:assert/strict'
import { setTimeout as sleep } from 'node:timers/promises'
import { MAX_OPEN_REQUESTS } from '../../protocol/messages.ts'
import { runTask } from '../../runners/runners.ts'
import type { ServiceContext } from '../../services.ts'
import {
  asksAll,
  asksAside,
  asksFor,
  crashesWaiting,
  leaves,
  QUEUED_REQUESTS,
  takesBack,
  takesParts,
} from '../asking-agents.ts'
import type { Case } from '../case.ts'

const PARTS = 10_000
const BLOCKED_MS = 5000
/** What has to happen soon may take this long on a slow machine. */
const SOON_MS = 60_000

/** A service that never answers, and the requests that wait for it. */
function endless() {
  const waiting = new Set<AbortSignal>()
  const never = (_: unknown, { signal }: Pick<ServiceContext, 'signal'>) => {
    waiting.add(signal)
    signal.addEventListener('abort', () => waiting.delete(signal))
    return new Promise(() => {})
  }
  return { waiting, never }
}

const upTo = (count: number) => Array.from({ length: count }, (_, i) => i)

/** Asserts that all requests end soon. */
async function assertLeft(waiting: ReadonlySet<AbortSignal>): Promise<void> {
  for (const until = Date.now() + SOON_MS; waiting.size > 0 && Date.now() < until; ) await sleep(20)
  assert.equal(waiting.size, 0, 'requests of an ended task are still open')
}

/** Requests of tasks to the driver. */
export const serviceCases: Case[] = [
  {
    name: 'services answer immediately, late or with an error, and large values pass both ways',
    async run(kit) {
      const services = {
        double: (question: number) => question * 2,
        late: async (question: unknown) => {
          await sleep(100)
          return question
        },
        fails: () => {
          throw new TypeError('no such thing')
        },
      }
      const large = { text: 'large '.repeat(300_000), bytes: new Uint8Array(100_000) }
      const responses = await runTask(
        [
          asksFor.task({ service: 'double', question: 21 }),
          asksFor.task({ service: 'late', question: large }, { timeoutMs: 60_000 }),
          asksFor.task({ service: 'fails' }),
          asksFor.task({ service: 'nobody' }),
          asksAll.task({ service: 'double', count: 300 }),
        ],
        kit.conf({ services }),
      )
      const [double, late, fails, nobody, all] = [...responses.values()]
      assert.equal(double!.answer, 42)
      assert.deepEqual(late!.answer, large)
      assert.deepEqual(fails!.answer, { code: 'SERVICE_FAILED', message: "service 'fails' failed: no such thing" })
      assert.equal((nobody!.answer as { code: string }).code, 'SERVICE_UNKNOWN')
      assert.deepEqual(
        all!.answer,
        upTo(300).map((i) => i * 2),
      )
      assert.ok(late!.timing.waitedMs >= 90, 'the response does not report its waiting time')
    },
  },
  {
    name: `a service streams ${PARTS} parts in order, and ends when nobody reads them`,
    async run(kit) {
      let ended = 0
      const services = {
        count: async function* (parts: number) {
          try {
            for (let i = 0; i < parts; i++) yield i
          } finally {
            ended++
          }
        },
      }
      const [all, some] = [
        await runTask(takesParts.task({ parts: PARTS }), kit.conf({ services })),
        await runTask(takesParts.task({ parts: PARTS, most: 100 }), kit.conf({ services })),
      ]
      assert.deepEqual(all.answer, { count: PARTS, inOrder: true })
      assert.deepEqual(some.answer, { count: 100, inOrder: true })
      for (const until = Date.now() + SOON_MS; ended < 2 && Date.now() < until; ) await sleep(20)
      assert.equal(ended, 2)
    },
  },
  {
    name: 'the requests of a task end with it: when it returns, is cancelled or times out, and when one request is aborted',
    async run(kit) {
      const { waiting, never } = endless()
      const services = { never, hello: () => waiting.size }
      const left = await runTask(leaves.task(null), kit.conf({ services }))
      assert.equal(left.answer, 'left')
      await assertLeft(waiting)
      const abort = new AbortController()
      const cancelled = runTask(asksFor.task({ service: 'never' }), kit.conf({ services, signal: abort.signal }))
      while (waiting.size === 0) await sleep(10)
      abort.abort()
      assert.equal((await cancelled).status, 'cancelled')
      await assertLeft(waiting)
      const options = { clock: 'runs', limitMs: 60_000 } as const
      const late = await runTask(
        asksFor.task({ service: 'never', options }, { timeoutMs: 500 }),
        kit.conf({ services }),
      )
      assert.equal(late.status, 'timeout')
      await assertLeft(waiting)
      const limited = await runTask(
        asksFor.task({ service: 'never', options: { limitMs: 200 } }),
        kit.conf({ services }),
      )
      assert.equal((limited.answer as { code: string }).code, 'REQUEST_TIMEOUT')
      await assertLeft(waiting)
      // When the aborted request has ended, the task already has the answer to another one.
      const takenBack = await runTask(takesBack.task(null), kit.conf({ services }))
      assert.deepEqual(takenBack.answer, { reason: 'enough', waiting: 0 })
    },
  },
  {
    name: `the requests of a task end with its worker, which is killed while ${MAX_OPEN_REQUESTS} requests are open`,
    needsProcess: true,
    async run(kit) {
      const { waiting, never } = endless()
      let most = 0
      // One of them is a stream: it tells the task that all requests are open, and stays open itself.
      const allOpen = async function* (others: number, { signal }: ServiceContext) {
        void never(null, { signal })
        while (waiting.size <= others) await sleep(5)
        most = waiting.size
        yield 'all open'
        await new Promise(() => {})
      }
      const killed = await runTask(
        crashesWaiting.task(MAX_OPEN_REQUESTS - 1),
        kit.conf({ services: { never, allOpen } }),
      )
      assert.equal(killed.status, 'crashed')
      assert.equal(most, MAX_OPEN_REQUESTS)
      await assertLeft(waiting)
    },
  },
  {
    name: `requests of a task arrive in order, at most ${MAX_OPEN_REQUESTS} at once; tasks take turns at a service`,
    async run(kit) {
      const asked: [taskId: string, i: number][] = []
      const ids = ['a', 'b', 'c']
      const meeting = () => {
        const { promise, resolve } = Promise.withResolvers<void>()
        let there = 0
        return () => {
          if (++there === ids.length) resolve()
          return promise
        }
      }
      const [together, queued] = [meeting(), meeting()]
      const allQueued = Promise.withResolvers<void>()
      const turns = async (i: number, { taskId }: ServiceContext) => {
        asked.push([taskId, i])
        // The first request is answered when each task has some in the queue.
        await allQueued.promise
        return sleep(1, i)
      }
      const services = {
        together,
        queued: () => queued().then(allQueued.resolve),
        turns: { atOnce: 1, answer: turns },
      }
      const tasks = ids.map((id) => asksAll.task({ service: 'turns', count: 200, together: true }, { id }))
      for (const { id, answer } of (await runTask(tasks, kit.conf({ services }))).values()) {
        assert.deepEqual(answer, upTo(200))
        const order = asked.filter(([taskId]) => taskId === id).map(([, i]) => i)
        assert.deepEqual(order, upTo(200), 'requests of a task arrived out of order')
      }
      // Without the first request, which came when no other task was waiting: so long, all three have requests in the queue.
      const waited = asked.slice(1, 1 + ids.length * (QUEUED_REQUESTS - 1)).map(([id]) => id)
      const repeats = waited.filter((id, i) => waited[i + 1] === id).length
      assert.equal(repeats, 0, `one task was served twice in a row ${repeats} times while others waited`)
      for (const id of ids)
        assert.equal(
          waited.filter((one) => one === id).length,
          QUEUED_REQUESTS - 1,
          `turns of ${id}: ${waited.join('')}`,
        )

      let open = 0
      let most = 0
      const full = Promise.withResolvers<void>()
      const limit = setTimeout(full.resolve, SOON_MS)
      // Then a moment for requests that are too many.
      const answered = full.promise.then(() => sleep(100))
      const counted = async (i: number) => {
        most = Math.max(most, ++open)
        if (open === MAX_OPEN_REQUESTS) full.resolve()
        await answered
        await sleep(1)
        open--
        return i
      }
      const one = await runTask(asksAll.task({ service: 'counted', count: 500 }), kit.conf({ services: { counted } }))
      clearTimeout(limit)
      assert.deepEqual(one.answer, upTo(500))
      assert.equal(most, MAX_OPEN_REQUESTS)
    },
  },
  {
    name: `the side thread of a worker is served while the event loop is blocked for ${BLOCKED_MS / 1000} s if the engine has a side wire, and otherwise after that`,
    async run(kit) {
      const asked: number[] = []
      const services = {
        time: () => {
          asked.push(Date.now())
          return 'now'
        },
      }
      const response = await runTask(asksAside.task(BLOCKED_MS), kit.conf({ services }))
      const ended = Date.now()
      assert.deepEqual(response.answer, { answer: 'now', whileBlocked: kit.hasSideWire })
      assert.equal(asked.length, 1)
      const beforeItsEnd = ended - asked[0]!
      if (kit.hasSideWire)
        assert.ok(beforeItsEnd > BLOCKED_MS / 5, `asked ${beforeItsEnd} ms before the end of the task`)
    },
  },
]
