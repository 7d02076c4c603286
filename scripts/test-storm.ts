/**
 * Runs the storms: `npm run test:storm`, and `npm run test:storm -- --seed N` for those of an earlier run. What else is given
 * goes to Vitest, for example a part of the name of a file.
 */
import { spawn } from 'node:child_process'
import { parseArgs } from 'node:util'

const { values, positionals } = parseArgs({ options: { seed: { type: 'string' } }, allowPositionals: true })
const seed = values.seed ?? String(Math.floor(Math.random() * 2 ** 31))
if (!/^\d{1,10}$/.test(seed)) {
  console.error(`test:storm: --seed ${seed} is not a whole number`)
  process.exit(2)
}
console.log(`storm: seed ${seed}`)
const env = { ...process.env, MANYWORLDS_TEST_SEED: seed }
const vitest = spawn('vitest', ['run', '--config', 'vitest.storm.config.ts', ...positionals], { stdio: 'inherit', env })
vitest.once('exit', (code) => process.exit(code ?? 1))
