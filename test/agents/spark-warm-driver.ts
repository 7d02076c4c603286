import { setTimeout as sleep } from 'node:timers/promises'
import { Runners } from '../../dist/index.js'
import { signal } from '../support/process-tree.ts'
import { noting } from './nodes.ts'

/** A driver whose Connect server is killed for good while its workers are only kept warm. Prints how long its end took. */
const [file, ...server] = process.argv.slice(2) as [string, ...string[]]
const tasks = Array.from({ length: 4 }, (_, i) => noting.task({ ms: 10, file, id: `t${i}` }))
await Runners.runTask(tasks, { engineName: 'spark', workerNum: 2, store: false })
for (const pid of server) signal(Number(pid), 'SIGKILL')
// The slots are gone by then, and what was asked of the server is being retried.
await sleep(3000)
const began = performance.now()
await Runners.shutdown()
console.log(Math.round(performance.now() - began))
