// Trains on lights, and prints a line for each epoch. Arguments: store, id, epochs, settings as JSON.
import { Runners } from 'manyworlds'
import { DistributedTrainingPipeline } from 'manyworlds/train'
import { driver, lightsTasks } from '../../agents/lights.ts'

const [store, runId, epochs, more] = process.argv.slice(2) as [string, string, string, string | undefined]
const { tasks: given = {}, justOneEpoch, ...settings } = JSON.parse(more ?? '{}')
const tasks = lightsTasks(60, given)
const pipeline = new DistributedTrainingPipeline({
  ...{ agent: driver, tasks, store, runId, resume: 'auto', seed: 5, rollouts: 4, tasksPerUpdate: 4, tasksPerEpoch: 12 },
  ...settings,
})
const begun = performance.now()
console.log(JSON.stringify({ begun: true }))
// And nobody closes it.
if (justOneEpoch) await pipeline.trainEpoch()
else
  for await (const { epoch, digest, updates, test } of pipeline.train({ epochs: Number(epochs) }))
    console.log(JSON.stringify({ epoch, digest, updates, test, ms: performance.now() - begun }))
await Runners.shutdown()
