// A world of Gymnasium: FrozenLake, where the ice is slippery, with a walker that knows nothing and one that knows the way.
import { Runners } from 'manyworlds'
import { fixedPolicy, pythonWorld, randomPolicy, stepAgent } from 'manyworlds/agents'

// Python is set up in the workers when they first need it; `npx manyworlds setup gymnasium` does that beforehand.
const lake = pythonWorld<number, number>({ kind: 'gymnasium', id: 'FrozenLake-v1' })

/** The best action on each of the 16 squares: 0 left, 1 down, 2 right, 3 up. */
const WAY = [0, 3, 3, 3, 0, 0, 0, 0, 3, 1, 0, 0, 0, 2, 1, 0]
const GOAL = 15

const wanderer = stepAgent({ name: 'wanderer', environment: lake, policy: randomPolicy(), maxSteps: 100 })
const guide = stepAgent({
  name: 'guide',
  environment: lake,
  policy: fixedPolicy((square: number) => WAY[square]!),
  maxSteps: 100,
})

// Both walk on the same ice: the seed of a task is the seed of its world.
const tasks = [wanderer, guide].flatMap((agent) =>
  Array.from({ length: 100 }, (_, seed) => agent.task({ seed }, { id: `${agent.name} ${seed}` })),
)

const reached = { wanderer: 0, guide: 0 }
for await (const { id, status, answer, error } of Runners.streamTask(tasks)) {
  if (status !== 'success') throw error
  // The answer is the last observation: the square on which the walk ended.
  if (answer === GOAL) reached[id.startsWith('guide') ? 'guide' : 'wanderer']++
}
console.log(`of 100 walks, ${reached.wanderer} by chance and ${reached.guide} by the best policy reached the goal`)
