// For programs that do not have their tasks together: submit now, collect later, shut down at the end.
import { setTimeout as sleep } from 'node:timers/promises'
import { DistributedExecutor, defineAgent } from 'manyworlds'

const square = defineAgent({
  name: 'square',
  run: async (n: number, ctx) => {
    await sleep(20 + ctx.random() * 300)
    if (n === 7) throw new Error('I do not like seven')
    return n * n
  },
})

const executor = new DistributedExecutor({ workerNum: 2, maxQueueSize: 100 })
let open = 0
for (let n = 1; n <= 10; n++, open++) executor.submitTask(square.task(n, { id: `square-${n}` }))

while (open > 0) {
  await sleep(100) // the program's other business
  // What was done since the last call. If nothing was, it waits for something, here for at most a second.
  const done = await executor.collectResults({ timeoutMs: 1000 })
  for (const [id, response] of done)
    console.log(
      `${id.padEnd(9)} ${response.success ? response.answer : `${response.status}: ${response.error.message}`}`,
    )
  open -= done.size
  console.log(`-- ${done.size} collected, ${executor.pending} pending`)
}

await executor.shutdown()
console.log('all collected, and the workers are gone')
