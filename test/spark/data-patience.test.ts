import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, expect, test } from 'vitest'
import { sparkSink, sparkTasks } from '../../dist/engines/spark/index.js'
import type { TaskResponse } from '../../dist/index.js'
import { echo } from '../agents/spark-data.ts'
import { startDataSpark } from './data-source.ts'

/**
 * Agents may take hours for what Spark reads in seconds. Spark gives up queries that nobody listens to, and sessions that are
 * idle, after some minutes; here after some seconds.
 */
const spark = await startDataSpark(1, {
  'spark.connect.execute.reattachable.senderMaxStreamDuration': '2s',
  'spark.connect.execute.manager.detachedTimeout': '5s',
  'spark.connect.execute.manager.maintenanceInterval': '1s',
  'spark.connect.session.manager.defaultSessionTimeout': '5s',
  'spark.connect.session.manager.maintenanceInterval': '1s',
})
/** Longer than what Spark allows, and the time until it looks. */
const PAUSE_MS = 9000

afterAll(() => spark.stop(), 60_000)

test('tasks that are read slowly, answers that come slowly', { timeout: 300_000 }, async () => {
  // Many megabytes: more than what is on its way at any time.
  const query = "SELECT id, repeat('x', 1000) AS text FROM range(40000)"
  const parquet = await spark.makeParquet('slow', query)
  async function* slowly() {
    let count = 0
    const tasks = sparkTasks({ parquet, id: 'id', input: 'text', agent: echo, slices: 2, ...spark.on })
    for await (const { id, input } of tasks) {
      // The first, and one of the second slice.
      if (++count === 1 || count === 30_000) await sleep(PAUSE_MS)
      const timing = { queuedMs: 0, runMs: 0 }
      yield { id, answer: String(input).length, status: 'success', timing, usage: {} } as TaskResponse
    }
    await sleep(PAUSE_MS)
  }
  const row = ({ id, answer }: TaskResponse) => ({ id, answer })
  const answers = spark.path('answers')
  const written = await sparkSink({ parquet: answers, row, ...spark.on }).write(slowly())
  expect(written).toEqual({ rows: 40_000, batches: 4 })
  const [sum] = await spark.query(`SELECT sum(answer) AS chars, count(DISTINCT id) AS ids FROM parquet.\`${answers}\``)
  expect(sum).toEqual({ chars: 40_000_000, ids: 40_000 })
})
