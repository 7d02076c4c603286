import { setTimeout as sleep } from 'node:timers/promises'
import { defineEnvironment, stepAgent } from 'manyworlds/agents'
import { gradientLearner, type Learner, softmaxCore, softmaxPolicy } from 'manyworlds/train'

/** A world that is learned in seconds, and takes its time: of four levers one pays, and each pull takes 2 to 8 ms. One episode in twenty takes much longer. */
export interface LeverTask {
  readonly lever: string
  /** What every pull pays; left out: the right one alone pays. */
  readonly pays?: number
}

const LEVERS = ['red', 'green', 'blue', 'black']
const PULLS = 3
const SLOW_MS = 80

const levers = defineEnvironment({
  name: 'levers',
  reset: ({ input }: { input: LeverTask }, ctx) => {
    const isSlow = ctx.randomStream('slow')() < 0.05
    return { state: { input, isSlow, pulls: 0 }, observation: `the ${input.lever} one`, candidates: LEVERS }
  },
  async step(state, lever: string, ctx) {
    await sleep(state.isSlow ? SLOW_MS : 2 + ctx.randomStream('latency')() * 6)
    const { input } = state
    const done = ++state.pulls === PULLS
    const reward = input.pays ?? (lever === input.lever ? 1 / PULLS : 0)
    return { observation: `the ${input.lever} one`, candidates: LEVERS, reward, done, success: done && reward > 0 }
  },
})

export const leverPolicy = softmaxPolicy<string, string>({
  name: 'puller',
  bits: 10,
  features: (observation, lever) => [`${observation}: ${lever}`],
})

export const puller = stepAgent({ name: 'puller', environment: levers, policy: leverPolicy })

export const leverTasks = (count: number, pays?: number) =>
  Array.from({ length: count }, (_, place) => ({
    id: `t${place}`,
    input: { lever: LEVERS[place % LEVERS.length]!, ...(pays !== undefined && { pays }) },
  }))

/** Makes four versions, and has had enough then. */
export function tiredLearner(): Learner {
  const learner = gradientLearner(softmaxCore(leverPolicy), { loss: { name: 'clip' }, lr: 0.1, proximal: 'learner' })
  const update = learner.update.bind(learner)
  let updates = 0
  return Object.assign(learner, {
    update: (batch: Parameters<Learner['update']>[0]) => {
      if (++updates > 4) throw new Error('the learner has had enough')
      return update(batch)
    },
  })
}
