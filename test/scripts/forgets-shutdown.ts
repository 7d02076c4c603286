import { DistributedExecutor } from 'manyworlds'
import { echo } from '../agents/basics.ts'

/** Submits, collects, and leaves the rest to the end of the program. */
const executor = new DistributedExecutor({ workerNum: 1 })
for (const n of [1, 2]) executor.submitTask(echo.task(n))
let got = 0
while (executor.pending > 0) got += (await executor.collectResults()).size
console.log('got', got + (await executor.collectResults()).size)
