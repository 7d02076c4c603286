// Evolves prompts, and prints a line for whatever is new: an episode, an update, an evaluation, an iteration. Arguments: store, base URL of the scripted models.
import { Runners } from 'manyworlds'
import { DistributedTrainingPipeline, promptLearner } from 'manyworlds/train'
import { rulesTasks, writer } from '../../agents/rules.ts'

const [store, baseURL] = process.argv.slice(2) as [string, string]
const price = { input: 1, output: 2 }
const print = (line: object) => console.log(JSON.stringify(line))
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
  progress: () => ({
    episode: (_, restored) => restored || print({ new: 'episode' }),
    update: () => print({ new: 'update' }),
    evaluation: () => print({ new: 'evaluation' }),
  }),
  learner: promptLearner({ reflect: 'large', budget: { evaluations: 120 } }),
})
for await (const { epoch, digest, test } of pipeline.train()) print({ epoch, digest, test })
await Runners.shutdown()
