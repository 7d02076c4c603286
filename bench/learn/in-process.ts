import { gradientLearner, type NeuralPolicy, RLTrainer, type SoftmaxPolicy } from 'manyworlds/train'
import { randomFrom } from '../../dist/random.js'
import { median } from '../figures.ts'
import { cartPole } from './cart-pole.ts'
import { frozenLake, successOf } from './frozen-lake.ts'
import type { LearnRow } from './gymnasium.ts'
import { CART_POLE, cartPolicy, FROZEN_LAKE, type LearnSettings, lakePolicy } from './settings.ts'
import { score, type World, walk } from './world.ts'

const FRESH_EPISODES = 100

type Act = ReturnType<SoftmaxPolicy['openBytes']>['act']
type Judge = (act: Act, update: number) => { readonly judged: string; readonly isSolved: boolean }

/** In this process, without workers or Python: what learning itself takes. */
export interface OwnRow extends LearnRow {
  readonly cpuSeconds: number
}

export const learnLakeHere = (seed: number): Promise<OwnRow> =>
  learn('FrozenLake-v1', frozenLake, lakePolicy, FROZEN_LAKE, seed, (act) => {
    const best = squaresOf(act)
    const success = successOf((square, action) => (best[square] === action ? 1 : 0))
    return { judged: `success ${success.toFixed(4)}`, isSolved: success >= 0.7 }
  })

export const learnCartHere = (seed: number): Promise<OwnRow> =>
  learn('CartPole-v1', cartPole, cartPolicy, CART_POLE, seed, (act, update) => {
    const fresh = Array.from({ length: FRESH_EPISODES }, (_, number) =>
      score(
        cartPole,
        act,
        randomFrom({ seed, purpose: 'judge', stream: '', task: `${update}`, visit: 0, rollout: number + 1 }),
      ),
    )
    const [middle, least] = [median(fresh), Math.min(...fresh)]
    return { judged: `median ${middle}, least ${least}`, isSolved: middle >= 475 && least >= 400 }
  })

async function learn<Observation>(
  name: string,
  world: World<Observation>,
  policy: NeuralPolicy<Observation, number> | SoftmaxPolicy<Observation, number>,
  { algorithm, episodesPerUpdate, updatesPerCheck, mostUpdates }: LearnSettings,
  seed: number,
  judge: Judge,
): Promise<OwnRow> {
  const { advantages, ...own } = algorithm
  const trainer = new RLTrainer({ learner: gradientLearner(await policy.learning.core(), own), advantages })
  let { ref, bytes } = await trainer.start({ seed })
  let [episodes, steps, spent, seconds] = [0, 0, 0, 0]
  let judgement = { judged: 'not checked', isSolved: false }
  for (let update = 0; update < mostUpdates && !judgement.isSolved; update++) {
    const [cpu, start] = [process.cpuUsage(), performance.now()]
    const { act } = policy.openBytes(bytes) as unknown as { act: Act }
    const key = { seed, update, version: ref.version }
    const batch = Array.from({ length: episodesPerUpdate }, (_, number) => walk(world, act, { ...key, number }))
    await trainer.trainStep(batch)
    ;({ ref, bytes } = await trainer.publish())
    episodes += batch.length
    steps += batch.reduce((sum, { steps }) => sum + steps.length, 0)
    const { user, system } = process.cpuUsage(cpu)
    spent += user + system
    seconds += (performance.now() - start) / 1000
    if ((update + 1) % updatesPerCheck === 0)
      judgement = judge((policy.openBytes(bytes) as unknown as { act: Act }).act, update)
  }
  const { judged, isSolved: reached } = judgement
  return { world: name, seed, seconds, cpuSeconds: spent / 1e6, episodes, steps, reached, judged }
}

function squaresOf(act: Act): unknown[] {
  const question = { candidates: frozenLake.actions, mode: 'greedy' as const, random: () => 0 }
  return Array.from({ length: 16 }, (_, observation) => act({ ...question, observation }).action)
}
