import assert from 'node:assert/strict'
import { runTask, streamTask } from '../../runners/runners.ts'
import { echo, falsy, large, pause, printer, stubborn, sumOf, thrower, tree } from '../agents.ts'
import { asksFor } from '../asking-agents.ts'
import type { Case } from '../case.ts'

const MEGABYTE = 2 ** 20
/** If a stream does not yield quick responses in this time, it waits for the slow one. */
const STREAM_MS = 60_000

/** Content and order of responses. */
export const answerCases: Case[] = [
  {
    name: 'responses come in the order of submission',
    async run(kit) {
      const tasks = Array.from({ length: 200 }, (_, i) => pause.task((i * 7919) % 40, { id: `t${i}` }))
      const responses = await runTask(tasks, kit.conf())
      assert.deepEqual(
        [...responses.keys()],
        tasks.map(({ id }) => id),
      )
      assert.deepEqual(
        [...responses.values()].map(({ answer }) => answer),
        tasks.map(({ input }) => input),
      )
    },
  },
  {
    name: 'a stream yields responses as they finish',
    async run(kit) {
      // The slow task ends when the responses of the others have been yielded, however long that takes.
      const { promise: othersDone, resolve } = Promise.withResolvers<void>()
      const slowFirst = [
        asksFor.task({ service: 'othersDone' }, { id: 'slow' }),
        ...Array.from({ length: 5 }, (_, i) => pause.task(1, { id: `quick${i}` })),
      ]
      const order: string[] = []
      const limit = setTimeout(resolve, STREAM_MS)
      for await (const { id } of streamTask(slowFirst, kit.conf({ services: { othersDone: () => othersDone } })))
        if (order.push(id) === 5) resolve()
      clearTimeout(limit)
      assert.equal(order.at(-1), 'slow')
      assert.equal(order.length, 6)
    },
  },
  {
    name: 'falsy answers are answers',
    async run(kit) {
      const responses = await runTask(
        [0, 1, 2, 3, 4, 5].map((which) => falsy.task(which)),
        kit.conf(),
      )
      assert.ok([...responses.values()].every(({ success }) => success))
      assert.deepEqual(
        [...responses.values()].map(({ answer }) => answer),
        [0, '', false, null, undefined, Number.NaN],
      )
    },
  },
  {
    name: 'maps, dates, bytes, big integers and cycles survive both ways',
    async run(kit) {
      const cyclic: { self?: unknown; list: number[] } = { list: [1, 2] }
      cyclic.self = cyclic
      const value = {
        map: new Map([['a', new Set([1])]]),
        date: new Date(1e12),
        bytes: new Uint8Array([1, 2, 3]),
        big: 2n ** 70n,
        minus: -0,
        cyclic,
      }
      const response = await runTask(echo.task(value), kit.conf())
      assert.ok(response.success)
      assert.deepEqual(response.answer, value)
    },
  },
  {
    name: 'any thrown value becomes one failed response',
    async run(kit) {
      const kinds = ['error', 'subclass', 'string', 'null', 'undefined', 'object', 'function'] as const
      const responses = await runTask(
        kinds.map((kind) => thrower.task(kind, { id: kind })),
        kit.conf(),
      )
      for (const response of responses.values()) {
        assert.equal(response.status, 'failed')
        assert.equal(response.error?.code, 'TASK_THREW')
      }
      assert.match(responses.get('error')!.error!.message, /kaputt/)
      assert.equal(responses.get('subclass')!.error!.name, 'Broken')
      assert.match(responses.get('string')!.error!.message, /just text/)
      assert.equal(responses.get('string')!.error!.cause, 'just text')
    },
  },
  {
    name: 'a failing task is retried with the same idempotency key',
    async run(kit) {
      const conf = kit.conf({ maxAttempts: 3, backoffMs: 1, runId: 'kit-run' })
      const responses = await runTask([stubborn.task(3, { id: 'third' }), stubborn.task(4, { id: 'never' })], conf)
      assert.deepEqual(responses.get('third')!.answer, { attempt: 3, key: 'kit-run/third' })
      assert.equal(responses.get('third')!.attempts, 3)
      assert.equal(responses.get('never')!.status, 'failed')
      assert.equal(responses.get('never')!.attempts, 3)
    },
  },
  {
    name: 'output and records of a task stay with that task',
    async run(kit) {
      const words = Array.from({ length: 20 }, (_, i) => `word${i}`)
      const responses = await runTask(
        words.map((word) => printer.task(word, { id: word })),
        kit.conf(),
      )
      for (const word of words) {
        const response = responses.get(word)!
        assert.deepEqual(response.logs, [`${word} 0`, `${word} 1`, `${word} 2`])
        assert.deepEqual(
          response.trajectory.map(({ action, reward, index }) => [action, reward, index]),
          [
            [word, 0, 0],
            [word, 1, 1],
            [word, 2, 2],
          ],
        )
      }
    },
  },
  {
    name: 'sub-tasks three levels deep complete on one worker with concurrency 1',
    async run(kit) {
      const response = await runTask(tree.task({ depth: 3, width: 2 }), kit.conf({ workerNum: 1, concurrency: 1 }))
      assert.equal(response.answer, 15)
    },
  },
  {
    name: 'large messages pass both ways, and small ones overtake them',
    async run(kit) {
      const bytes = new Uint8Array(24 * MEGABYTE).map((_, i) => (i % 4096 === 0 ? (i / 4096) % 7 : 0))
      const small = Array.from({ length: 50 }, (_, i) => echo.task(i, { id: `small${i}` }))
      const big = [1, 2].map((n) => large.task({ bytes, answerBytes: n * 16 * MEGABYTE }, { id: `large${n}` }))
      // A small task cannot overtake while its agent loads.
      await runTask([echo.task(0)], kit.conf())
      const done: string[] = []
      for await (const response of streamTask([...big, ...small], kit.conf())) {
        done.push(response.id)
        if (!response.id.startsWith('large')) continue
        const { received, sum, answer } = response.answer as { received: number; sum: number; answer: Uint8Array }
        assert.equal(received, bytes.byteLength)
        assert.equal(sum, sumOf(bytes))
        assert.equal(answer.byteLength, Number(response.id.at(-1)) * 16 * MEGABYTE)
        assert.equal(answer[4096 * 250], 250)
      }
      assert.equal(done.length, 52)
      // A worker alone is given few tasks at first, and the large ones are the first of them.
      if (kit.hasProcesses) assert.ok(done.indexOf('large1') > 0, 'a small task should overtake a large one')
    },
  },
]
