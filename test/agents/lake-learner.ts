import { pythonWorld, stepAgent } from 'manyworlds/agents'
import { softmaxPolicy } from 'manyworlds/train'

const lake = pythonWorld<number, number>({ kind: 'gymnasium', id: 'FrozenLake-v1' })

/** A table: one weight for each action on each square. */
const policy = softmaxPolicy<number, number>({
  name: 'lake',
  bits: 10,
  features: (square, way) => [`${square} ${way}`],
})

export const skater = stepAgent({ name: 'skater', environment: lake, policy, maxSteps: 100 })
