import { Runners } from 'manyworlds'
import { DistributedTrainingPipeline, type EpochReport, type PipelineOptions } from 'manyworlds/train'
import { afterAll, expect, test } from 'vitest'
import { clerk } from '../../examples/start/clerks.ts'
import { deskTasks } from '../../examples/tool-desk/desk.ts'
import { startNode } from '../nodes/daemon.ts'
import { childrenOf, signal } from '../support/process-tree.ts'
import { stormTest } from '../support/storm.ts'
import { lightsCurve } from './lights-curve.ts'

/** Seconds of one core, and more where others use it too. */
const SLOW = { timeout: 300_000 }

afterAll(() => Runners.shutdown())

async function trainClerk(updates: number, more: Partial<PipelineOptions> = {}): Promise<EpochReport> {
  const tasks = (part: 'train' | 'held-out', count: number) =>
    deskTasks({ part, count, seed: 1 }).map((input) => ({ input }))
  const pipeline = new DistributedTrainingPipeline({
    ...{ agent: clerk, tasks: { train: tasks('train', 2048), test: tasks('held-out', 500) } },
    ...{ algorithm: { lr: 0.1 }, seed: 1, tasksPerEpoch: updates * 16, evaluate: { testRollouts: 4 } },
    ...{ store: false, workerNum: 2, ...more },
  })
  for await (const report of pipeline.train({ epochs: 1 })) return report
  throw new Error('no epoch')
}

test(
  'an agent learns the tool desk in workers, and puts together operations that it never saw together',
  SLOW,
  async () => {
    const { test: after, updates } = await trainClerk(128)
    expect(updates).toBe(128)
    expect(after!.before.success!.high).toBeLessThan(0.1)
    expect(after!.success!.low).toBeGreaterThanOrEqual(0.95)
    expect(after!.difference!.low).toBeGreaterThan(0.85)
  },
)

stormTest('with shuffled rewards it learns nothing', SLOW, async () => {
  const { test: after, version } = await trainClerk(64, { control: 'shuffled' })
  expect(version).toBeGreaterThan(5)
  expect(after!.success!.high).toBeLessThan(0.1)
})

stormTest('on nodes, with workers killed, the curve is that of this machine', SLOW, async () => {
  const node = await startNode()
  try {
    let kills = 0
    const on = { engineName: 'nodes', nodes: { addresses: [node.address] }, workerNum: 2 } as const
    const disturbed = await lightsCurve(on, () => {
      signal(childrenOf(node.pid).at(-1)!, 'SIGKILL')
      kills++
    })
    expect(disturbed).toBe(await lightsCurve({ workerNum: 2 }))
    expect(kills).toBe(4)
  } finally {
    await Runners.shutdown()
    await node.kill('SIGTERM')
  }
})
