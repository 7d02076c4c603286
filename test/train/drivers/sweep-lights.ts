// Sweeps on lights, and prints a line for each training and one for the summary. Arguments: store, grid as JSON.
import { Runners } from 'manyworlds'
import { DistributedTrainingPipeline } from 'manyworlds/train'
import { driver, lightsTasks } from '../../agents/lights.ts'

const [store, grid] = process.argv.slice(2) as [string, string]
const pipeline = new DistributedTrainingPipeline({
  ...{ agent: driver, tasks: lightsTasks(60), store, runId: 'hunt', rollouts: 4, tasksPerUpdate: 4, tasksPerEpoch: 8 },
  evaluate: { testRollouts: 1 },
})
const sweep = pipeline.sweep(JSON.parse(grid))
for await (const { id, seed, restored, digest, epochs } of sweep)
  console.log(JSON.stringify({ id, seed, restored, digest, epochs }))
console.log(JSON.stringify(await sweep.summary()))
await Runners.shutdown()
