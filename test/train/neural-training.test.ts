import { type ActionStep, Runners } from 'manyworlds'
import { DistributedTrainingPipeline, type EpochReport } from 'manyworlds/train'
import { afterAll, expect, test } from 'vitest'
import { cartPole } from '../../bench/learn/cart-pole.ts'
import { frozenLake, successOf } from '../../bench/learn/frozen-lake.ts'
import { balancingLearner } from '../agents/cart.ts'
import { balancer } from '../agents/python-worlds.ts'
import { SET_UP_MS, whyNoWorlds } from '../worlds/needs-python.ts'

const skip = (await whyNoWorlds('gymnasium')) !== undefined
afterAll(() => Runners.shutdown())

/** With the defaults of a neural policy. */
async function balance(updates: number, workerNum: number): Promise<EpochReport[]> {
  const train = Array.from({ length: 16 }, (_, place) => ({ id: `episode-${place}`, input: place }))
  const pipeline = new DistributedTrainingPipeline({
    ...{ agent: balancingLearner, tasks: { train }, seed: 1, store: false, workerNum, evaluate: false },
    ...{ rollouts: 1, tasksPerUpdate: 16, tasksPerEpoch: 16 },
  })
  const reports: EpochReport[] = []
  for await (const report of pipeline.train({ epochs: updates })) reports.push(report)
  return reports
}

test('a neural policy learns to balance a pole, in workers, and comes to the same curve again', {
  timeout: 300_000,
}, async () => {
  const reports = await balance(7, 2)
  const lengths = reports.map(({ length }) => length!)
  expect(lengths[0]).toBeLessThan(40)
  expect(lengths.at(-1)).toBeGreaterThan(120)
  expect(reports.at(-1)!.metrics.explainedVariance).toBeGreaterThan(0.3)
  const again = await balance(2, 1)
  expect(again.map(({ digest }) => digest)).toEqual(reports.slice(0, 2).map(({ digest }) => digest))
})

test('the judge of FrozenLake knows the best way, and what chance comes to', () => {
  const WAY = [0, 3, 3, 3, 0, 0, 0, 0, 3, 1, 0, 0, 0, 2, 1, 0]
  expect(successOf((square, action) => (WAY[square] === action ? 1 : 0))).toBeCloseTo(0.7402, 4)
  expect(successOf(() => 1 / frozenLake.actions.length)).toBeCloseTo(0.0139, 3)
})

test.skipIf(skip)('the CartPole of the bench moves as that of Gymnasium', { timeout: SET_UP_MS }, async () => {
  const response = await Runners.runTask(balancer.task({ seed: 3 }), { workerNum: 1, store: false })
  const steps = response.trajectory as readonly ActionStep[]
  expect(steps.length).toBeGreaterThan(8)
  for (const [i, { observation, action }] of steps.slice(0, -1).entries()) {
    const { observation: next, done } = cartPole.step(observation as number[], action as number, Math.random)
    expect(done).toBe(false)
    // Observations of Gymnasium are float32.
    for (const [place, value] of (steps[i + 1]!.observation as number[]).entries())
      expect(next[place]).toBeCloseTo(value, 5)
  }
})
