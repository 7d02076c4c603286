// Learners for threads: modules that are imported there by their URL.
import type { Algorithm } from '../../../dist/train/algorithm.js'
import { gradientLearner } from '../../../dist/train/gradient-learner.js'
import type { Learner } from '../../../dist/train/learner.js'
import { neuralPolicy } from '../../../dist/train/neural/neural-policy.js'
import { softmaxCore } from '../../../dist/train/softmax/softmax-core.js'
import { softmaxPolicy } from '../../../dist/train/softmax/softmax-policy.js'
import { gatePolicy } from '../../agents/gate.ts'

export const kitPolicy = softmaxPolicy({ bits: 10 })

export const learns = (): Learner => gradientLearner(softmaxCore(kitPolicy), { loss: { name: 'clip' }, lr: 0.2 })

/** What goes wrong in an update, and only there. */
const faults: Record<string, () => unknown> = {
  throws: () => {
    throw new RangeError('the batch is not to my taste')
  },
  'returns NaN': () => ({ loss: Number.NaN }),
  'returns nothing': () => undefined,
  exits: () => process.exit(3),
  'runs forever': () => {
    for (;;);
  },
  'computes for 6 s': () => {
    const end = performance.now() + 6000
    while (performance.now() < end);
    return { loss: 1 }
  },
  'never answers': () => new Promise(() => {}),
  'takes too much memory': () => {
    const held: unknown[] = []
    for (;;) held.push(new Array(1e6).fill({}))
  },
}

export function faulty(fault: string): Learner {
  const good = learns()
  return {
    start: (options) => good.start(options),
    update: async () => faults[fault]!() as never,
    publish: () => good.publish(),
    retire: (ref) => good.retire(ref),
    save: () => good.save(),
    load: (state) => good.load(state),
  }
}

export const notALearner = () => ({ start: () => {} })
export function refuses() {
  throw new Error('no learner today')
}

const ROOMS = ['two arms', 'red', 'amber', 'green']
/** Sees which of the kit's observations it is. */
export const neuralKit = neuralPolicy<unknown, unknown>({
  inputs: {
    size: 4,
    of: (seen) => ROOMS.map((room) => (room === seen || room === (seen as { light?: string }).light ? 1 : 0)),
  },
  actions: ['left', 'right', 'stop', 'wait', 'go'],
  hidden: [16],
})

export const neuralLearns = async (algorithm: Partial<Algorithm> = {}): Promise<Learner> =>
  gradientLearner(await neuralKit.learning.core(), { loss: { name: 'clip' }, lr: 0.05, ...algorithm })

export const gateLearns = (): Learner =>
  gradientLearner(softmaxCore(gatePolicy), { loss: { name: 'reinforce', value: 1 }, lr: 0.1 })
