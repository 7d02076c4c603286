import { gradientLearner } from '../../../dist/train/gradient-learner.js'
import type { Learner } from '../../../dist/train/learner.js'
import { loraCore } from '../../../dist/train/lora/lora-core.js'
import { tiny } from './tiny.ts'

/** For a thread of its own. */
export const learns = (): Learner => gradientLearner(loraCore(tiny), { loss: { name: 'clip', kl: 0.01 }, lr: 0.01 })
