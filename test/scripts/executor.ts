import { DistributedExecutor, defineAgent } from 'manyworlds'

const square = defineAgent({ name: 'square', run: async (input: number) => input * input })

await using executor = new DistributedExecutor({ workerNum: 1 })
const id = executor.submitTask(square.task(3))
const results = await executor.collectResults()
console.log(JSON.stringify([id, results.get(id)?.answer]))
