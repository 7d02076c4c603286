import assert from 'node:assert/strict'
import { runTask, streamTask } from '../../runners/runners.ts'
import { echo, suddenKiller, thrower } from '../agents.ts'
import type { Case } from '../case.ts'

/** If a short run has not ended after this time, it waits for the long one. */
const SHORT_MS = 60_000

/** Many tasks, some of which misbehave. */
export const volumeCases: Case[] = [
  {
    name: '10,000 tasks, of which some throw and two kill their worker, are each answered exactly once',
    needsProcess: true,
    async run(kit) {
      const expected: Record<string, number> = {}
      const tasks = Array.from({ length: 10_000 }, (_, i) => {
        const status = i % 5000 === 2500 ? 'crashed' : i % 97 === 0 ? 'failed' : 'success'
        expected[status] = (expected[status] ?? 0) + 1
        const options = { id: `t${i}` }
        if (status === 'crashed') return suddenKiller.task(true, options)
        return status === 'failed'
          ? thrower.task('error', options)
          : echo.task({ i, text: 'x'.repeat(i % 300) }, options)
      })
      const seen = new Map<string, string>()
      for await (const { id, status } of streamTask(tasks, kit.conf({ concurrency: 64 }))) {
        assert.ok(!seen.has(id), `${id} was answered twice`)
        seen.set(id, status)
      }
      const statuses: Record<string, number> = {}
      for (const status of seen.values()) statuses[status] = (statuses[status] ?? 0) + 1
      assert.deepEqual(statuses, expected)
    },
  },
  {
    name: 'two simultaneous runs share the workers, and neither waits for the other to end',
    async run(kit) {
      const order: string[] = []
      // It goes on until the short run has ended, however slow that is.
      const until = Date.now() + SHORT_MS
      function* many() {
        for (let i = 0; i < 30_000 || (order.length === 0 && Date.now() < until); i++) yield echo.task(i)
      }
      const runLong = async () => {
        for await (const { success } of streamTask(many(), kit.conf())) assert.ok(success)
        order.push('long')
      }
      const long = runLong()
      const short = runTask(
        Array.from({ length: 5 }, (_, i) => echo.task(i)),
        kit.conf(),
      ).then(() => order.push('short'))
      await Promise.all([long, short])
      assert.deepEqual(order, ['short', 'long'])
    },
  },
]
