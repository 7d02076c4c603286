import { Runners } from '../../../dist/index.js'
import { killer, turns } from '../../agents/models.ts'

/** A driver whose only worker dies while two calls are under way and many wait for their turn. */
const [baseURL, store, via] = process.argv.slice(2) as [string, string, 'driver' | 'direct']
const tasks = Array.from({ length: 24 }, (_, n) => turns.task({ name: `crash ${via} ${n}`, turns: 1 }))
// Two calls are always under way: when the fourth has arrived, it is one of them.
const doomed = killer.task({ url: baseURL.replace('/v1', ''), text: `crash ${via} `, count: 4 })
const responses = await Runners.runTask([doomed, ...tasks], {
  ...{ store, workerNum: 1, concurrency: 32 },
  models: { m: { baseURL, model: 'text+latency:400', via, maxConcurrent: 2, requestsPerMinute: 100_000 } },
})
console.log(JSON.stringify([...responses.values()].map(({ id, success, answer }) => ({ id, success, answer }))))
await Runners.shutdown()
