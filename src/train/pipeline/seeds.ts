import { hash } from 'node:crypto'

/** Bits of a seed: as many as all readers of JSON and all tables can hold, with some to spare. */
const HEX_DIGITS = 12

/**
 * The seed of a run of a training. Those of collections differ by update, so that a batch that taught nothing is not collected again as
 * it was; those of evaluations are the same for all versions, so that versions can be compared task by task.
 */
export const runSeed = (seed: number, purpose: 'collect' | 'evaluate', of: number | string): number =>
  Number.parseInt(hash('sha256', JSON.stringify(['manyworlds.training.1', seed, purpose, of])).slice(0, HEX_DIGITS), 16)
