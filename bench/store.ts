import { describeMachine } from './machine.ts'
import { calls } from './store/calls.ts'
import { chats } from './store/chats.ts'
import { memory } from './store/memory.ts'
import { rounds } from './store/rounds.ts'

/**
 * What the store costs: CPU per task, bytes of conversations on disk and on the link, memory of the driver, small calls.
 *
 *   node bench/store.ts [--only rounds,chats,memory,calls] [--tasks N] [--rounds N]
 */
const parts = { rounds, chats, memory, calls }
const at = process.argv.indexOf('--only')
const wanted = at < 0 ? Object.keys(parts) : process.argv[at + 1]!.split(',')
for (const [name, measure] of Object.entries(parts)) {
  if (!wanted.includes(name)) continue
  console.log(`\n### ${name}\n`)
  await measure()
}
console.log(`\n${describeMachine()}`)
