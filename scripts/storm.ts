/**
 * Kills workers from outside while harmless tasks run, and says what came of it:
 *
 *     node scripts/storm.ts --engine local --kills 1000 --seed 7
 *     node scripts/storm.ts --engine local --kills 200 --again 0.5
 *     node scripts/storm.ts --engine ray --kills 100 --config '{"ray":{"address":"127.0.0.1:6379"}}'
 *
 * Exit code 1: a task was lost, answered twice or charged for a kill, or a process was left behind.
 */
import { parseArgs } from 'node:util'
import type { RunConfig } from '../dist/index.js'
import { killStorm, type StormOptions } from '../test/storm/kill-storm.ts'

const { values } = parseArgs({
  options: {
    engine: { type: 'string', default: 'local' },
    kills: { type: 'string', default: '100' },
    seed: { type: 'string', default: String(Math.floor(Math.random() * 1e9)) },
    'every-ms': { type: 'string', default: '100' },
    again: { type: 'string', default: '0' },
    config: { type: 'string', default: '{}' },
  },
})
const report = await killStorm({
  engine: values.engine as StormOptions['engine'],
  kills: Number(values.kills),
  seed: Number(values.seed),
  everyMs: Number(values['every-ms']),
  again: Number(values.again),
  config: JSON.parse(values.config) as RunConfig,
  log: (line) => console.error(line),
})
console.log(JSON.stringify(report, undefined, 2))
const { lost, twice, wronglyCharged, wrong, leftBehind } = report
process.exitCode = [lost, twice, wronglyCharged, wrong, leftBehind].some((list) => list.length > 0) ? 1 : 0
