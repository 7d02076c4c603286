import { hash } from 'node:crypto'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Runners } from 'manyworlds'
import { pythonWorld, stepAgent } from 'manyworlds/agents'
import { StoredTraining } from 'manyworlds/runs'
import { DistributedTrainingPipeline } from 'manyworlds/train'
import { median } from '../figures.ts'
import { successOf } from './frozen-lake.ts'
import { CART_POLE, cartPolicy, FROZEN_LAKE, type LearnSettings, lakePolicy } from './settings.ts'

const FRESH_EPISODES = 100
/** Seeds of worlds that no training has: those of tasks have 32 bits and follow from the task. */
const FRESH_SEEDS = 1_000_000_000

const lakeWalker = stepAgent({
  name: 'lake-walker',
  environment: pythonWorld<number, number>({ kind: 'gymnasium', id: 'FrozenLake-v1' }),
  ...{ policy: lakePolicy, maxSteps: 100 },
})
const cartBalancer = stepAgent({
  name: 'cart-balancer',
  environment: pythonWorld<readonly number[], number>({ kind: 'gymnasium', id: 'CartPole-v1' }),
  ...{ policy: cartPolicy, maxSteps: 500 },
})
type LearnAgent = typeof lakeWalker | typeof cartBalancer

/** What it took to reach the threshold of a world. */
export interface LearnRow {
  readonly world: string
  readonly seed: number
  /** Without the checks. */
  readonly seconds: number
  readonly episodes: number
  readonly steps: number
  readonly reached: boolean
  /** How good the last version that was checked is, in words. */
  readonly judged: string
}

interface Judgement {
  readonly isSolved: boolean
  readonly judged: string
}

/** The greedy table reaches the goal with a probability of .70 or more, by dynamic programming; the optimum is .7402. */
export const learnFrozenLake = (seed: number, workerNum = 1): Promise<LearnRow> =>
  learn('FrozenLake-v1', lakeWalker, FROZEN_LAKE, seed, workerNum, async (_, bytes) => {
    const { act } = lakePolicy.openBytes(bytes)
    const best = Array.from(
      { length: 16 },
      (_, observation) => act({ observation, candidates: [0, 1, 2, 3], mode: 'greedy', random: () => 0 }).action,
    )
    const success = successOf((square, action) => (best[square] === action ? 1 : 0))
    return { isSolved: success >= 0.7, judged: `success ${success.toFixed(4)}` }
  })

/** Greedy on 100 fresh episodes: a median of 475 or more, and none below 400. */
export const learnCartPole = (seed: number, workerNum = 1): Promise<LearnRow> =>
  learn('CartPole-v1', cartBalancer, CART_POLE, seed, workerNum, async (version, bytes) => {
    const digest = hash('sha256', bytes)
    const ref = { policy: cartPolicy.name, version, digest, at: { blob: digest } }
    const agent = cartBalancer.withParams({ ...cartBalancer.params, mode: 'greedy', policy: ref })
    const tasks = Array.from({ length: FRESH_EPISODES }, (_, place) =>
      agent.task({ seed: FRESH_SEEDS + version * FRESH_EPISODES + place }),
    )
    const responses = await Runners.runTask(tasks, { workerNum, store: false, blobs: { weights: bytes } })
    const lengths = [...responses.values()].map(({ episode, error }) => {
      if (!episode) throw error
      return episode.reward!
    })
    const [middle, least] = [median(lengths), Math.min(...lengths)]
    return { isSolved: middle >= 475 && least >= 400, judged: `median ${middle}, least ${least}` }
  })

async function learn(
  world: string,
  agent: LearnAgent,
  { algorithm, episodesPerUpdate, updatesPerCheck, mostUpdates }: LearnSettings,
  seed: number,
  workerNum: number,
  judge: (version: number, bytes: Uint8Array) => Promise<Judgement>,
): Promise<LearnRow> {
  const store = mkdtempSync(join(tmpdir(), 'manyworlds-learn-'))
  // Which world an episode has follows from its task and the seed of its update: the same tasks are new ones each time.
  const train = Array.from({ length: episodesPerUpdate }, (_, place) => ({ id: `episode-${place}`, input: {} }))
  await using pipeline = new DistributedTrainingPipeline({
    ...{ agent, tasks: { train }, algorithm, seed, store, workerNum },
    ...{ rollouts: 1, tasksPerUpdate: episodesPerUpdate, evaluate: false },
  })
  try {
    let [seconds, episodes, steps] = [0, 0, 0]
    let judgement: Judgement = { isSolved: false, judged: 'not checked' }
    for (let update = 0; update < mostUpdates && !judgement.isSolved; update += updatesPerCheck) {
      const start = performance.now()
      const report = await pipeline.trainEpoch({ tasksPerEpoch: episodesPerUpdate * updatesPerCheck })
      seconds += (performance.now() - start) / 1000
      episodes += report.trajectories
      steps += Math.round(report.trajectories * (report.length ?? 0))
      using training = StoredTraining.open(pipeline.id!, { store })
      judgement = await judge(report.version, await training.weights(report.version))
    }
    return { world, seed, seconds, episodes, steps, reached: judgement.isSolved, judged: judgement.judged }
  } finally {
    await pipeline.close()
    rmSync(store, { recursive: true, force: true })
  }
}
