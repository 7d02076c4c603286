import type { EnvironmentContext } from '../environment.ts'
import { worldError } from './world-errors.ts'
import { shown, WHOLE } from './world-options.ts'

/** Some worlds pass seeds to libraries that accept only 31 bits. */
const SEEDS = 2 ** 31

/** A seed for this episode, from its own random stream, so that it does not depend on other draws. */
export const seedOf = (ctx: EnvironmentContext): number => Math.floor(ctx.randomStream('world')() * SEEDS)

/** The seed of the task, or a derived one. */
export function taskSeed(seed: unknown, ctx: EnvironmentContext, name: string): number {
  if (seed === undefined || seed === null) return seedOf(ctx)
  const [isWhole, must] = WHOLE
  if (isWhole(seed)) return seed as number
  throw worldError('WORLD_FAILED', `the seed of a task in '${name}' must be ${must}, it is ${shown(seed)}`)
}
