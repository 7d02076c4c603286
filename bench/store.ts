import { execFileSync } from 'node:child_process'
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
  // Each in a process of its own: what one leaves in memory would be measured with the next.
  if (wanted.length > 1) {
    const flags = ['--expose-gc', import.meta.filename, '--only', name, ...process.argv.slice(2)]
    execFileSync(process.execPath, flags, { stdio: 'inherit' })
    continue
  }
  console.log(`\n### ${name}\n`)
  await measure()
}
if (wanted.length > 1) console.log(`\n${describeMachine()}`)
