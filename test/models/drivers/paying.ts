import { Runners } from '../../../dist/index.js'
import { turns } from '../../agents/models.ts'

/** A driver whose tasks have conversations of several turns: 64 calls are under way at any moment. */
const [baseURL, store, via] = process.argv.slice(2) as [string, string, 'driver' | 'direct']
const tasks = Array.from({ length: 64 }, (_, n) => turns.task({ name: `${via} ${n}`, turns: 4 }, { id: `t${n}` }))
const responses = await Runners.runTask(tasks, {
  ...{ store, runId: 'paying', resume: 'auto', workerNum: 2, concurrency: 32 },
  models: { m: { baseURL, model: 'text+latency:400', via, requestsPerMinute: 100_000 } },
})
console.log(JSON.stringify([...responses.values()].map(({ id, success, answer }) => ({ id, success, answer }))))
await Runners.shutdown()
