import { Runners } from 'manyworlds'
import { DistributedTrainingPipeline } from 'manyworlds/train'
import { leverTasks, puller } from '../../agents/levers.ts'

/** An overlapped training in a store, which goes on where it was killed. Arguments: the store, epochs. */
const [store, epochs] = process.argv.slice(2) as [string, string]

const pipeline = new DistributedTrainingPipeline({
  agent: puller,
  tasks: { train: leverTasks(40) },
  ...{ store, runId: 't', resume: 'auto', workerNum: 2, concurrency: 8, seed: 3 },
  ...{ rollouts: 4, tasksPerUpdate: 8, tasksPerEpoch: 80, evaluate: false, overlap: { maxStaleness: 2 } },
  algorithm: { lr: 0.1 },
})
for await (const { epoch, updates } of pipeline.train({ epochs: Number(epochs) }))
  console.log(JSON.stringify({ epoch, updates }))
await Runners.shutdown()
