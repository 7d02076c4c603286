import { describeMachine } from './machine.ts'
import { cost } from './steps/cost.ts'
import { flight } from './steps/flight.ts'
import { size } from './steps/size.ts'

/**
 * What steps of agents in environments cost: CPU beside a plain loop, bytes on disk, and how well episodes that wait are spread.
 *
 *   node bench/steps.ts [--only cost,size,flight] [--rounds N] [--episodes N]
 */
const parts = { cost, size, flight }
const at = process.argv.indexOf('--only')
const wanted = at < 0 ? Object.keys(parts) : process.argv[at + 1]!.split(',')
for (const [name, measure] of Object.entries(parts)) {
  if (!wanted.includes(name)) continue
  console.log(`\n### ${name}\n`)
  await measure()
}
console.log(`\n${describeMachine()}`)
