// Trains the babbler, and prints a line for each epoch. Arguments: store, id, epochs, settings as JSON.
import { Runners } from 'manyworlds'
import { DistributedTrainingPipeline } from 'manyworlds/train'
import { babbler, babblerTasks } from '../../agents/tiny-llm.ts'

const [store, runId, epochs, more] = process.argv.slice(2) as [string, string, string, string | undefined]
const pipeline = new DistributedTrainingPipeline({
  ...{ agent: babbler, tasks: babblerTasks(30), offTask: babblerTasks(34).slice(30), store, runId, resume: 'auto' },
  ...{ seed: 5, rollouts: 8, tasksPerUpdate: 4, tasksPerEpoch: 16, workerNum: 2 },
  algorithm: { lr: 0.02, loss: { name: 'clip', kl: 0.001 } },
  ...JSON.parse(more ?? '{}'),
})
const begun = performance.now()
console.log(JSON.stringify({ begun: true }))
for await (const report of pipeline.train({ epochs: Number(epochs) })) {
  const { epoch, reward, updates, digest, metrics, validation, offTask, test, alarms, staleness } = report
  const ms = performance.now() - begun
  console.log(
    JSON.stringify({ epoch, reward, updates, digest, metrics, validation, offTask, test, alarms, staleness, ms }),
  )
}
await Runners.shutdown()
