import { setTimeout as sleep } from 'node:timers/promises'
import { defineEnvironment, stepAgent } from 'manyworlds/agents'
import { gradientLearner, type Learner, softmaxCore, softmaxPolicy } from 'manyworlds/train'
import { type DeskObservation, type DeskTask, desk } from '../../examples/tool-desk/desk.ts'
import { deskFeatures } from '../../examples/tool-desk/features.ts'

const LEAST_MS = 5
const MOST_MS = 20

/** The tool desk, whose every step takes its time, as a model or a browser would. */
const slowDesk = defineEnvironment({
  name: 'slow-desk',
  reset: (task: { id: string; input: DeskTask }, ctx) => desk.reset(task, ctx),
  async step(state, call: string, ctx) {
    await sleep(LEAST_MS + ctx.randomStream('latency')() * (MOST_MS - LEAST_MS))
    return desk.step(state, call, ctx)
  },
})

const policy = softmaxPolicy<DeskObservation, string>({ name: 'clerk', features: deskFeatures })

export const slowClerk = stepAgent({ name: 'slow-clerk', environment: slowDesk, policy })
export const quickClerk = stepAgent({ name: 'quick-clerk', environment: desk, policy })

/** A learner that takes its time too, as one on a GPU or on another machine does. */
export function slowLearner({ updateMs }: { readonly updateMs: number }): Learner {
  const learner = gradientLearner(softmaxCore(policy), { loss: { name: 'clip' }, lr: 0.05, proximal: 'learner' })
  const update = learner.update.bind(learner)
  return Object.assign(learner, {
    update: async (batch: Parameters<Learner['update']>[0]) => {
      const [metrics] = await Promise.all([update(batch), sleep(updateMs)])
      return metrics
    },
  })
}
