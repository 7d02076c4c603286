import type { Algorithm } from '../algorithm.ts'
import { gradientLearner } from '../gradient-learner.ts'
import type { Learner } from '../learner.ts'
import { mapLoss } from './loss-mapping.ts'
import type { TinkerOptions } from './settings.ts'
import { tinkerCore } from './tinker-core.ts'

/**
 * A learner whose adapter is trained by Tinker. Throws if Tinker cannot compute the loss, before anything is paid for.
 *
 * @example
 * const learner = tinkerLearner(
 *   { base: 'Qwen/Qwen3-4B-Instruct-2507', rank: 32, apiKeyEnv: 'TINKER_API_KEY' },
 *   { loss: { name: 'clip' }, lr: 4e-5 },
 * )
 */
export function tinkerLearner(options: TinkerOptions, algorithm: Algorithm): Learner {
  mapLoss(algorithm.loss)
  return gradientLearner(tinkerCore(options), algorithm)
}
