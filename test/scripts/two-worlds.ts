import { isWorker, Runners } from 'manyworlds'
import { defineEnvironment, stepAgent } from 'manyworlds/agents'

/** An environment that is another in the worker: a step agent of the same name would do something else there. */
const world = defineEnvironment({
  name: 'world',
  reset: () => ({ state: 0, observation: 0 }),
  step: isWorker
    ? () => ({ observation: 1, reward: 1, done: true })
    : () => ({ observation: 0, reward: 0, done: true }),
})
const agent = stepAgent({ name: 'two-worlds', environment: world, act: () => 'go' })
await Runners.runTask(agent.task(1), { store: false })
