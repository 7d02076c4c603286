import { numberOf } from '../figures.ts'
import { learnCartHere, learnLakeHere } from './in-process.ts'

/**
 * Learns FrozenLake and CartPole in this process, without workers or Python: to find settings. Worlds and settings are those of
 * `npm run bench:learn`.
 *
 *   node bench/learn/tune.ts [--from SEED] [--seeds N] [--lake-only] [--cart-only]
 */
const FROM = numberOf('--from', Math.floor(Math.random() * 1e6))
const SEEDS = numberOf('--seeds', 10)

for (let seed = FROM; seed < FROM + SEEDS; seed++) {
  if (!process.argv.includes('--cart-only')) console.log(JSON.stringify(await learnLakeHere(seed)))
  if (!process.argv.includes('--lake-only')) console.log(JSON.stringify(await learnCartHere(seed)))
}
