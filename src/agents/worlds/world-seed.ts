import type { EnvironmentContext } from '../environment.ts'
import { worldError } from './world-errors.ts'
import { shown, WHOLE } from './world-options.ts'

/** Some worlds hand seeds on to libraries that take 31 bits. */
const SEEDS = 2 ** 31

/** A seed of this episode alone, from a stream of its own: a world's chances depend on nothing else that draws numbers. */
export const seedOf = (ctx: EnvironmentContext): number => Math.floor(ctx.randomStream('world')() * SEEDS)

/** The seed that a task names, or one of its own. */
export function taskSeed(seed: unknown, ctx: EnvironmentContext, name: string): number {
  if (seed === undefined || seed === null) return seedOf(ctx)
  const [isWhole, must] = WHOLE
  if (isWhole(seed)) return seed as number
  throw worldError('WORLD_FAILED', `the seed of a task in '${name}' must be ${must}, it is ${shown(seed)}`)
}
