import { test } from 'vitest'

/**
 * `npm test` runs a short share of the storms and fuzzers. `npm run test:storm` runs all of each, and what is only there:
 * clusters whose plugs are pulled. One seed decides what is random in both. It is printed, and
 * `npm run test:storm -- --seed N` repeats it.
 */
export const IN_STORM = process.env.MANYWORLDS_STORM === 'true'

export const SEED = Number(process.env.MANYWORLDS_TEST_SEED ?? Math.floor(Math.random() * 2 ** 31))

/** How much of something: in `npm test`, and in the storm. */
export const share = (short: number, all: number): number => (IN_STORM ? all : short)

/** A test of `npm run test:storm` alone. */
export const stormTest = (name: string, options: { readonly timeout: number }, run: () => Promise<void>): void => {
  if (IN_STORM) test(name, options, run)
}
