/**
 * Runs tests, one file at a time or all of `npm test`, and prints the longest files: `npm run test:costs`, or
 * `npm run test:costs -- test/store`. CPU time is that of all processes of a file, also of daemons; it needs Linux and root.
 */
import { spawnSync } from 'node:child_process'
import { mkdtempSync, readFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

const MOST = 50

interface Cost {
  readonly name: string
  readonly wallMs: number
  readonly cpuMs: number
}

const file = join(mkdtempSync(join(tmpdir(), 'mw-costs-')), 'costs.jsonl')
const { status } = spawnSync('vitest', ['run', ...process.argv.slice(2)], {
  env: { ...process.env, MANYWORLDS_TEST_COSTS: file },
  stdio: 'inherit',
})
const costs = readFileSync(file, 'utf8')
  .trimEnd()
  .split('\n')
  .map((line): Cost => JSON.parse(line))
  .sort((a, b) => b.cpuMs - a.cpuMs)
const minutes = (of: 'wallMs' | 'cpuMs') => (costs.reduce((sum, one) => sum + one[of], 0) / 60_000).toFixed(1)
console.log(
  `\n${costs.length} files, ${minutes('cpuMs')} minutes of CPU, ${minutes('wallMs')} of waiting and computing`,
)
for (const { name, cpuMs, wallMs } of costs.slice(0, MOST))
  console.log(`${(cpuMs / 1000).toFixed(1).padStart(7)} s CPU ${(wallMs / 1000).toFixed(1).padStart(7)} s  ${name}`)
process.exit(status ?? 1)
