import { Runners } from 'manyworlds'
import { DistributedTrainingPipeline } from 'manyworlds/train'
import { deskTasks } from '../../examples/tool-desk/desk.ts'
import { numberOf } from '../figures.ts'
import { quickClerk } from './desk.ts'

const SEEDS = numberOf('--seeds', 5)
const MOST_UPDATES = 400
const TASKS_PER_UPDATE = 16
/** Validation comes after every so many updates. */
const UPDATES_PER_EPOCH = 4
const VALIDATION_TASKS = 300
const THRESHOLD = 0.95
const LIMIT = 1.2

/** How many more episodes an overlapped training needs, since it learns from what older versions did: to 95 % on compositions that it never saw. */
export async function threshold(): Promise<void> {
  const first = numberOf('--seed', Math.floor(Math.random() * 1e6))
  console.log(
    `\nEpisodes until ${THRESHOLD * 100} % of unseen tasks are solved, in turns and overlapped (maxStaleness 1):`,
  )
  const sums = { turns: 0, overlapped: 0 }
  for (let seed = first; seed < first + SEEDS; seed++) {
    const turns = await episodesToThreshold(seed, false)
    const overlapped = await episodesToThreshold(seed, true)
    console.log(`  seed ${seed}: ${turns} and ${overlapped}`)
    sums.turns += turns
    sums.overlapped += overlapped
  }
  await Runners.shutdown()
  const ratio = sums.overlapped / sums.turns
  console.log(`in all, ${ratio.toFixed(2)} times as many (at most ${LIMIT})`)
  if (!(ratio <= LIMIT)) process.exitCode = 1
}

async function episodesToThreshold(seed: number, overlap: boolean): Promise<number> {
  const tasks = (part: 'train' | 'held-out', count: number) =>
    deskTasks({ part, count, seed }).map((input, place) => ({ id: `${part}-${place}`, input }))
  const pipeline = new DistributedTrainingPipeline({
    agent: quickClerk,
    tasks: {
      train: tasks('train', MOST_UPDATES * TASKS_PER_UPDATE),
      validation: tasks('held-out', VALIDATION_TASKS),
    },
    ...{ tasksPerUpdate: TASKS_PER_UPDATE, tasksPerEpoch: UPDATES_PER_EPOCH * TASKS_PER_UPDATE, rollouts: 8 },
    ...{ seed, overlap, store: false, workerNum: 2 },
  })
  let episodes = 0
  for await (const { trajectories, validation } of pipeline.train({ epochs: MOST_UPDATES / UPDATES_PER_EPOCH })) {
    episodes += trajectories
    if (validation!.success!.value >= THRESHOLD) return episodes
  }
  return Number.POSITIVE_INFINITY
}
