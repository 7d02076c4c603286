import { Runners } from '../../dist/index.js'
import { noting } from './nodes.ts'

/** A driver to be killed: tasks that take longer than anybody waits, on the Spark that SPARK_REMOTE names or on one of its own. */
const [file, workers = '2'] = process.argv.slice(2) as [string, string?]
const workerNum = Number(workers)
const tasks = Array.from({ length: 4 * workerNum }, (_, i) => noting.task({ ms: 600_000, file, id: `t${i}` }))
const run = Runners.runTask(tasks, {
  ...{ engineName: 'spark', workerNum, concurrency: 4, store: false },
  ...(process.env.SPARK_REMOTE ? {} : { inLocal: true }),
})
await run.catch((error) => console.log('failed', error.code))
await Runners.shutdown()
console.log('shut down')
