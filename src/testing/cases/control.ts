import assert from 'node:assert/strict'
import { setTimeout as sleep } from 'node:timers/promises'
import { runTask, streamTask } from '../../runners/runners.ts'
import { busyLoop, deaf, echo, obedient, pause } from '../agents.ts'
import type { Case } from '../case.ts'

/** Timeouts, cancellation and flow control. */
export const controlCases: Case[] = [
  {
    name: 'a timeout counts from the start of a task, not from its queueing',
    async run(kit) {
      const tasks = Array.from({ length: 8 }, () => pause.task(250))
      const responses = await runTask(tasks, kit.conf({ workerNum: 1, concurrency: 1, timeoutMs: 1500 }))
      assert.deepEqual(
        [...responses.values()].map(({ status }) => status),
        Array(8).fill('success'),
      )
    },
  },
  {
    name: 'a task that takes too long times out, and its neighbors do not',
    async run(kit) {
      const tasks = [
        obedient.task(30_000, { id: 'slow', timeoutMs: 200 }),
        ...Array.from({ length: 10 }, () => obedient.task(400)),
      ]
      const responses = await runTask(tasks, kit.conf())
      assert.equal(responses.get('slow')!.status, 'timeout')
      assert.equal(responses.get('slow')!.error!.code, 'TASK_TIMEOUT')
      assert.equal([...responses.values()].filter(({ success }) => success).length, 10)
    },
  },
  {
    name: 'a task that blocks its event loop is stopped, and only that one',
    needsProcess: true,
    async run(kit) {
      const tasks = [
        busyLoop.task({ afterMs: 100 }, { id: 'busy', timeoutMs: 700 }),
        ...Array.from({ length: 10 }, () => pause.task(300, { timeoutMs: 20_000 })),
      ]
      const responses = await runTask(tasks, kit.conf({ workerNum: 1 }))
      const busy = responses.get('busy')!
      assert.equal(busy.status, 'timeout')
      assert.equal(busy.error!.code, 'TASK_BLOCKED_WORKER')
      assert.match(busy.error!.stack ?? '', /testing\/agents/)
      assert.deepEqual([...responses.values()].filter(({ success, attempts }) => success && attempts === 1).length, 10)
    },
  },
  {
    name: 'a late answer changes nothing',
    async run(kit) {
      const tasks = Array.from({ length: 10 }, () => deaf.task(700))
      let seen = 0
      for await (const { status } of streamTask(tasks, kit.conf({ timeoutMs: 200 }))) {
        assert.equal(status, 'timeout')
        seen++
      }
      assert.equal(seen, 10)
      await sleep(1000)
      const after = await runTask(
        [1, 2, 3].map((n) => echo.task(n)),
        kit.conf(),
      )
      assert.deepEqual(
        [...after.values()].map(({ answer }) => answer),
        [1, 2, 3],
      )
    },
  },
  {
    name: 'cancelling a run answers every task, even one that blocks its event loop',
    needsProcess: true,
    async run(kit) {
      const abort = new AbortController()
      const tasks = [
        ...Array.from({ length: 10 }, () => echo.task('quick')),
        busyLoop.task({ afterMs: 0 }),
        ...Array.from({ length: 60 }, () => obedient.task(60_000)),
      ]
      let seen = 0
      const statuses: Record<string, number> = {}
      for await (const { status } of streamTask(tasks, kit.conf({ signal: abort.signal, concurrency: 8 }))) {
        statuses[status] = (statuses[status] ?? 0) + 1
        if (++seen === 8) abort.abort()
      }
      assert.equal(seen, 71)
      assert.equal((statuses.success ?? 0) + (statuses.cancelled ?? 0), 71)
      assert.ok((statuses.cancelled ?? 0) >= 61)
    },
  },
  {
    name: 'a run that reaches its deadline reports the remaining tasks as cancelled',
    async run(kit) {
      // Make sure that a worker is running: the deadline counts from the start of the run.
      await runTask(echo.task('warm'), kit.conf({ concurrency: 4 }))
      const tasks = [echo.task('quick', { id: 'quick' }), ...Array.from({ length: 20 }, () => obedient.task(60_000))]
      const responses = await runTask(tasks, kit.conf({ deadlineMs: 8000, concurrency: 4 }))
      assert.equal(responses.get('quick')!.status, 'success')
      const late = [...responses.values()].filter(({ error }) => error?.code === 'RUN_DEADLINE')
      assert.equal(late.length, 20)
    },
  },
  {
    name: 'tasks are not read far ahead of the capacity of workers',
    async run(kit) {
      let read = 0
      let done = 0
      let ahead = 0
      async function* source() {
        for (; read < 300; read++) {
          ahead = Math.max(ahead, read - done)
          yield pause.task(20)
        }
      }
      for await (const { success } of streamTask(source(), kit.conf({ workerNum: 2, concurrency: 4 }))) {
        assert.ok(success)
        done++
      }
      assert.equal(done, 300)
      assert.ok(ahead <= 64, `${ahead} tasks were read ahead of 8 slots`)
    },
  },
]
