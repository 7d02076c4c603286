import { Runners } from '../../dist/index.js'
import { noting } from './nodes.ts'

/** A driver that disappears: tasks that take longer than anybody waits, on the Ray that the arguments name. */
const [file, address, tokenFile] = process.argv.slice(2) as [string, string, string]
const tasks = Array.from({ length: 8 }, (_, i) => noting.task({ ms: 600_000, file, id: `t${i}` }))
await Runners.runTask(tasks, {
  ...{ engineName: 'ray', ray: { address, tokenFile }, workerNum: 2, concurrency: 4, store: false },
})
