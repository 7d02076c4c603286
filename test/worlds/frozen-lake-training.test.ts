import { Runners } from 'manyworlds'
import { DistributedTrainingPipeline, type EpochReport } from 'manyworlds/train'
import { afterAll, expect, test } from 'vitest'
import { skater } from '../agents/lake-learner.ts'
import { SET_UP_MS, whyNoWorlds } from './needs-python.ts'

const skip = (await whyNoWorlds('gymnasium')) !== undefined

afterAll(() => Runners.shutdown())

test.skipIf(skip)('an agent becomes better on the frozen lake of Gymnasium', { timeout: SET_UP_MS }, async () => {
  const tasks = (from: number, count: number) =>
    Array.from({ length: count }, (_, i) => ({ input: { seed: from + i } }))
  const pipeline = new DistributedTrainingPipeline({
    ...{ agent: skater, tasks: { train: tasks(0, 1000), test: tasks(1000, 100) }, store: false, workerNum: 2, seed: 1 },
    algorithm: { advantages: { name: 'reinforce', baseline: 'batch' }, lr: 0.3 },
    ...{ rollouts: 1, tasksPerUpdate: 100, tasksPerEpoch: 1000, evaluate: { testRollouts: 4 } },
  })
  const reports: EpochReport[] = []
  for await (const report of pipeline.train({ epochs: 4 })) reports.push(report)
  const last = reports.at(-1)!
  expect(last).toMatchObject({ trajectories: 1000, updates: 40, version: 40, dropped: 0 })
  // By chance it is 1 or 2 %; the optimum is 74 %.
  expect(last.test!.before.reward!.high).toBeLessThan(0.1)
  expect(last.test!.reward!.low).toBeGreaterThan(0.3)
  expect(last.reward).toBeGreaterThan(reports[0]!.reward!)
})
