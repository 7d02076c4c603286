import { Runners } from 'manyworlds'
import { numberOf } from './figures.ts'
import { learnCartPole, learnFrozenLake } from './learn/gymnasium.ts'
import { learnCartHere, learnLakeHere, type OwnRow } from './learn/in-process.ts'
import { type Sb3Row, sb3Rows } from './learn/sb3.ts'
import { learnToolDesk } from './learn/tool-desk.ts'
import { describeMachine } from './machine.ts'

/**
 * Whether agents learn what they should, with seeds that are drawn now: each must reach its threshold. Then, seed by seed, what it takes here
 * and what it takes Stable-Baselines3, on one thread each: this side in one process, with the worlds in TypeScript.
 *
 *   node bench/learn.ts [--seeds N] [--from SEED] [--workers N] [--no-python]
 */
const FROM = numberOf('--from', Math.floor(Math.random() * 1e6))
const SEEDS = Array.from({ length: numberOf('--seeds', 5) }, (_, place) => FROM + place)
const WORKERS = numberOf('--workers', 1)

interface Row {
  readonly seed: number
  readonly reached: boolean
}

/** Each learns with one seed after the other, and prints a row for each. */
const PARTS: readonly { readonly name: string; readonly learn: (seed: number) => Promise<Row & object> }[] = [
  {
    name: 'Tool desk: lower bound at least .95 on 500 unseen tasks x 4, from under .10; shuffled rewards under .10',
    learn: (seed) => learnToolDesk(seed, WORKERS),
  },
  {
    name: 'FrozenLake-v1 4x4, slippery: success by exact dynamic programming at least .70',
    learn: (seed) => learnFrozenLake(seed, WORKERS),
  },
  {
    name: 'CartPole-v1: greedy on 100 fresh episodes, median at least 475, none below 400',
    learn: (seed) => learnCartPole(seed, WORKERS),
  },
]

console.log(`Seeds: ${SEEDS.join(', ')}; ${WORKERS} worker${WORKERS === 1 ? '' : 's'}`)
for (const { name, learn } of PARTS) {
  console.log(`\n${name}`)
  for (const seed of SEEDS) {
    const row = await learn(seed)
    console.log(line(row))
    if (!row.reached) process.exitCode = 1
  }
}
await Runners.shutdown()
if (!process.argv.includes('--no-python')) await compare()
console.log(`\n${describeMachine()}`)

/** One after the other, so that both have the machine as it is. */
async function compare(): Promise<void> {
  const worlds = { 'FrozenLake-v1': learnLakeHere, 'CartPole-v1': learnCartHere } as const
  for (const [world, learnHere] of Object.entries(worlds) as [keyof typeof worlds, typeof learnLakeHere][]) {
    console.log(`\n${world}, to the threshold, beside Stable-Baselines3`)
    for (const seed of SEEDS) {
      const here = await learnHere(seed)
      for await (const there of sb3Rows([seed], [world]))
        console.log(`  seed ${seed}: here ${cost(here)}; there ${cost(there)}`)
    }
  }
}

function cost({ episodes, seconds, cpuSeconds, reached }: OwnRow | Sb3Row): string {
  return `${episodes} episodes, ${seconds.toFixed(1)} s, ${cpuSeconds.toFixed(1)} s of CPU${reached ? '' : ' (NOT REACHED)'}`
}

function line(row: Row & object): string {
  const { seed, reached, ...rest } = row
  const figures = Object.entries(rest)
    .filter(([key]) => key !== 'world')
    .map(([key, value]) =>
      key === 'judged'
        ? value
        : `${typeof value === 'number' && !Number.isInteger(value) ? value.toFixed(1) : value} ${key}`,
    )
  return `  seed ${seed}: ${reached ? 'reached' : 'NOT REACHED'}, ${figures.join(', ')}`
}
