import { Runners } from '../../dist/index.js'
import { noting } from './nodes.ts'

/** A driver to be killed: tasks that take longer than anybody waits, on the Spark that SPARK_REMOTE names or on one of its own. */
const file = process.argv[2]!
const tasks = Array.from({ length: 8 }, (_, i) => noting.task({ ms: 600_000, file, id: `t${i}` }))
await Runners.runTask(tasks, {
  ...{ engineName: 'spark', workerNum: 2, concurrency: 4, store: false },
  ...(process.env.SPARK_REMOTE ? {} : { inLocal: true }),
})
