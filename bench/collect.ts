import { flight } from './collect/flight.ts'
import { overlapped } from './collect/overlapped.ts'
import { threshold } from './collect/threshold.ts'
import { describeMachine } from './machine.ts'

/**
 * How well episodes that wait are collected, and what it costs, and brings, to collect while training goes on.
 *
 *   node bench/collect.ts [--only flight,overlapped,threshold] [--rounds N] [--epochs N] [--seeds N]
 */
const parts = { flight, overlapped, threshold }
const at = process.argv.indexOf('--only')
const wanted = at < 0 ? Object.keys(parts) : process.argv[at + 1]!.split(',')
for (const [name, measure] of Object.entries(parts)) if (wanted.includes(name)) await measure()
console.log(`\n${describeMachine()}`)
