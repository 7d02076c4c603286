import { DistributedTrainingPipeline, type EpochReport, type PipelineOptions } from 'manyworlds/train'
import { clerk } from '../../examples/start/clerks.ts'
import { deskTasks } from '../../examples/tool-desk/desk.ts'

const UPDATES = 320

/** Learns the tool desk in workers, and once more with rewards that are dealt out at random. */
export async function learnToolDesk(seed: number, workerNum: number) {
  const start = performance.now()
  const { test, trajectories: episodes } = await train(seed, workerNum)
  const seconds = (performance.now() - start) / 1000
  const { test: shuffled } = await train(seed, workerNum, { control: 'shuffled' })
  const [success, before, none] = [test!.success!, test!.before.success!, shuffled!.success!]
  const reached = success.low >= 0.95 && before.high < 0.1 && none.high < 0.1
  const judged = `test ${shown(success)} from ${shown(before)}; shuffled rewards ${shown(none)}`
  return { seed, reached, seconds, episodes, judged }
}

async function train(seed: number, workerNum: number, more: Partial<PipelineOptions> = {}): Promise<EpochReport> {
  const tasks = (part: 'train' | 'held-out', count: number) =>
    deskTasks({ part, count, seed }).map((input) => ({ input }))
  const pipeline = new DistributedTrainingPipeline({
    ...{ agent: clerk, tasks: { train: tasks('train', 2048), test: tasks('held-out', 500) } },
    ...{ seed, tasksPerEpoch: UPDATES * 16, evaluate: { testRollouts: 4 } },
    ...{ store: false, workerNum, ...more },
  })
  for await (const report of pipeline.train({ epochs: 1 })) return report
  throw new Error('the training had no epoch')
}

const shown = ({ value, low, high }: { value: number; low: number; high: number }) =>
  `${value.toFixed(3)} [${low.toFixed(3)}, ${high.toFixed(3)}]`
