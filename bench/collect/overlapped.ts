import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Runners } from 'manyworlds'
import { DistributedTrainingPipeline } from 'manyworlds/train'
import { deskTasks } from '../../examples/tool-desk/desk.ts'
import { median, numberOf } from '../figures.ts'
import { slowClerk } from './desk.ts'

/** Epochs that are measured; the first, in which workers start, is not. */
const EPOCHS = numberOf('--epochs', 4)
const UPDATES_PER_EPOCH = 10
const TASKS_PER_UPDATE = 16
const LIMIT = 1.1

/** Milliseconds of an update: from one to the next, of collecting for it, and of learning from it. Medians over the epochs. */
interface Cycle {
  readonly cycle: number
  readonly collect: number
  readonly learn: number
  readonly staleness: number
}

/**
 * How long an update takes if collection goes on while the learner is busy: about as long as the longer of the two, not as both. Collection is bound by
 * latency, 5 to 20 ms a step; the learner takes a tenth of that time, and as long.
 */
export async function overlapped(): Promise<void> {
  const { collect } = await measure(0, false)
  console.log(
    `\nOverlapped training: ${TASKS_PER_UPDATE * 8} episodes an update at 5 to 20 ms a step, run file on; collecting alone takes ${ms(collect)}`,
  )
  for (const share of [0.1, 1]) {
    const turns = await measure(share * collect, false)
    const longer = Math.max(turns.collect, turns.learn)
    console.log(
      `collecting ${ms(turns.collect)}, learning ${ms(turns.learn)}; in turns, an update takes ${ms(turns.cycle)}`,
    )
    for (const maxStaleness of [1, 2]) {
      const { cycle, staleness } = await measure(share * collect, { maxStaleness })
      const ratio = cycle / longer
      console.log(
        `  overlapped, maxStaleness ${maxStaleness}: ${ms(cycle)}, ${ratio.toFixed(2)} times the longer of the two (at most ${LIMIT}); mean staleness ${staleness.toFixed(2)}`,
      )
      if (ratio > LIMIT) process.exitCode = 1
    }
  }
}

async function measure(updateMs: number, overlap: false | { readonly maxStaleness: number }): Promise<Cycle> {
  const store = mkdtempSync(join(tmpdir(), 'manyworlds-overlapped-'))
  const count = (EPOCHS + 1) * UPDATES_PER_EPOCH * TASKS_PER_UPDATE
  const pipeline = new DistributedTrainingPipeline({
    agent: slowClerk,
    tasks: { train: deskTasks({ part: 'train', count, seed: 1 }).map((input) => ({ input })) },
    learner: { module: new URL('./desk.ts', import.meta.url), export: 'slowLearner', options: { updateMs } },
    ...{ tasksPerUpdate: TASKS_PER_UPDATE, tasksPerEpoch: UPDATES_PER_EPOCH * TASKS_PER_UPDATE, rollouts: 8 },
    ...{ seed: 1, evaluate: false, overlap, store, workerNum: 2, concurrency: 64 },
  })
  const epochs: Cycle[] = []
  let begun = 0
  for await (const { epoch, collectMs, trainMs, staleness } of pipeline.train({ epochs: EPOCHS + 1 })) {
    const now = performance.now()
    const each = (value: number) => value / UPDATES_PER_EPOCH
    if (epoch > 1)
      epochs.push({
        ...{ cycle: each(now - begun), collect: each(collectMs), learn: each(trainMs) },
        staleness: staleness?.mean ?? 0,
      })
    begun = now
  }
  await Runners.shutdown()
  rmSync(store, { recursive: true })
  const of = (key: keyof Cycle) => median(epochs.map((one) => one[key]))
  return { cycle: of('cycle'), collect: of('collect'), learn: of('learn'), staleness: of('staleness') }
}

const ms = (value: number) => `${value.toFixed(0)} ms`
