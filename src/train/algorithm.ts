import { ManyworldsError } from '../errors.ts'
import { checkKeys } from './check-keys.ts'
import { type LossSettings, lossRule } from './loss-settings.ts'

/** How a batch of rows changes weights. */
export interface Algorithm {
  readonly loss: LossSettings
  /** The learning rate. */
  readonly lr: number
  /** A gradient that is longer is made so long. Default: as it is. */
  readonly clipNorm?: number
  /** How often each batch is learned from. Default 1. */
  readonly epochs?: number
  /** Steps of the optimizer for each time; above 1, rows are shuffled by the seed. Default 1. */
  readonly miniBatches?: number
  /** Rows that the core is given at a time. It changes memory and no number. Default 4096. */
  readonly microBatch?: number
  /** Where rows have no proximal log-probability: that of the policy that acted, or that of the learner when the update begins. Default `behaviour`. */
  readonly proximal?: 'behaviour' | 'learner'
}

const MICRO_BATCH_ROWS = 4096

export const ALGORITHM_KEYS = ['loss', 'lr', 'clipNorm', 'epochs', 'miniBatches', 'microBatch', 'proximal']

/** Checks it once, before anything is learned. */
export function checkedAlgorithm(algorithm: Algorithm): Required<Algorithm> {
  checkKeys(algorithm, ALGORITHM_KEYS, '`algorithm`')
  const { loss, lr, clipNorm = Infinity, epochs = 1, miniBatches = 1, proximal = 'behaviour' } = algorithm
  const { microBatch = MICRO_BATCH_ROWS } = algorithm
  const refuse = (key: string, must: string, value: unknown) => {
    throw new ManyworldsError('CONFIG_INVALID', `\`${key}\` of the algorithm must be ${must}; it is ${String(value)}`)
  }
  lossRule(loss)
  if (!(lr > 0 && lr < Infinity)) refuse('lr', 'a number above 0', lr)
  if (!(clipNorm > 0)) refuse('clipNorm', 'a number above 0', clipNorm)
  for (const [key, value] of Object.entries({ epochs, miniBatches, microBatch }))
    if (!(Number.isInteger(value) && value >= 1)) refuse(key, 'a whole number from 1', value)
  if (proximal !== 'behaviour' && proximal !== 'learner') refuse('proximal', "'behaviour' or 'learner'", proximal)
  return { loss, lr, clipNorm, epochs, miniBatches, microBatch, proximal }
}
