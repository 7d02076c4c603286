import { hash } from 'node:crypto'

/** 48 bits, so that the seed is exact in JSON and in every table. */
const HEX_DIGITS = 12

/**
 * The seed of a run of a training. Collections have a different seed for each update, so that a batch that taught
 * nothing is not collected again unchanged; evaluations have the same seed for all versions, so that versions can be
 * compared task by task.
 */
export const runSeed = (seed: number, purpose: 'collect' | 'evaluate', of: number | string): number =>
  Number.parseInt(hash('sha256', JSON.stringify(['manyworlds.training.1', seed, purpose, of])).slice(0, HEX_DIGITS), 16)
