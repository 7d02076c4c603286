// Evolves prompts, and prints a line for each iteration. Arguments: store, base URL of the scripted models.
import { Runners } from 'manyworlds'
import { DistributedTrainingPipeline, promptLearner } from 'manyworlds/train'
import { rulesTasks, writer } from '../../agents/rules.ts'

const [store, baseURL] = process.argv.slice(2) as [string, string]
const price = { input: 1, output: 2 }
const pipeline = new DistributedTrainingPipeline({
  ...{
    agent: writer,
    tasks: rulesTasks({ train: 18, validation: 12, test: 12 }),
    store,
    runId: 'rules',
    resume: 'auto',
  },
  ...{ seed: 3, workerNum: 1, evaluate: { testRollouts: 1 } },
  models: {
    student: { baseURL, model: 'student', price },
    large: { baseURL, model: 'reflector', price },
  },
  learner: promptLearner({ reflect: 'large', budget: { evaluations: 120 } }),
})
const begun = performance.now()
console.log(JSON.stringify({ begun: true }))
for await (const { epoch, digest, test } of pipeline.train())
  console.log(JSON.stringify({ epoch, digest, test, ms: performance.now() - begun }))
await Runners.shutdown()
