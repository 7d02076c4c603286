import { ManyworldsError } from '../errors.ts'
import { checkKeys } from './check-keys.ts'
import { type LossSettings, lossRule } from './loss-settings.ts'

/** How a batch of rows updates the weights. */
export interface Algorithm {
  readonly loss: LossSettings
  /** The learning rate. */
  readonly lr: number
  /** Gradients with a larger norm are scaled down to this norm. Default: no clipping. */
  readonly clipNorm?: number
  /** How many times each batch is trained on. Default 1. */
  readonly epochs?: number
  /** Optimizer steps per epoch; above 1, rows are shuffled by the seed. Default 1. */
  readonly miniBatches?: number
  /**
   * Rows passed to the core at a time. Affects memory, not results; for LoRA the last bits of the gradient. Default 4096;
   * 64 for LoRA.
   */
  readonly microBatch?: number
  /**
   * The proximal policy of rows without a proximal log-probability: the policy that acted, or the learner at the start
   * of the update. Default `behavior`; `learner` with `overlap`, and for a LoRA policy that another program or 16-bit
   * numbers sample for.
   */
  readonly proximal?: 'behavior' | 'learner'
}

const MICRO_BATCH_ROWS = 4096

export const ALGORITHM_KEYS = ['loss', 'lr', 'clipNorm', 'epochs', 'miniBatches', 'microBatch', 'proximal']

/** Validates the algorithm and fills in defaults. */
export function checkedAlgorithm(algorithm: Algorithm): Required<Algorithm> {
  checkKeys(algorithm, ALGORITHM_KEYS, '`algorithm`')
  const { loss, lr, clipNorm = Infinity, epochs = 1, miniBatches = 1, proximal = 'behavior' } = algorithm
  const { microBatch = MICRO_BATCH_ROWS } = algorithm
  const refuse = (key: string, must: string, value: unknown) => {
    throw new ManyworldsError('CONFIG_INVALID', `\`${key}\` of the algorithm must be ${must}; it is ${String(value)}`)
  }
  lossRule(loss)
  if (!(lr > 0 && lr < Infinity)) refuse('lr', 'a number above 0', lr)
  if (!(clipNorm > 0)) refuse('clipNorm', 'a number above 0', clipNorm)
  for (const [key, value] of Object.entries({ epochs, miniBatches, microBatch }))
    if (!(Number.isInteger(value) && value >= 1)) refuse(key, 'a whole number of at least 1', value)
  if (proximal !== 'behavior' && proximal !== 'learner') refuse('proximal', "'behavior' or 'learner'", proximal)
  return { loss, lr, clipNorm, epochs, miniBatches, microBatch, proximal }
}
