import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import { median, numberOf } from './figures.ts'
import { describeMachine } from './machine.ts'

/**
 * What a worker loads when an agent's module imports this package: modules, CPU and memory, for each entry point.
 *
 *   node bench/import.ts [--rounds N] [--package FOLDER]
 *
 * `--package` names another build of it, to compare with.
 */
const ROUNDS = numberOf('--rounds', 11)
const at = process.argv.indexOf('--package')
const folder = at < 0 ? resolve(import.meta.dirname, '..') : resolve(process.argv[at + 1]!)
/** vitest is imported by test files, never by workers. */
const LEFT_OUT = ['./package.json', './vitest']

interface Probed {
  readonly modules: number
  readonly packages: readonly string[]
  readonly cpuMs: number
  readonly rssMb: number
  readonly heapMb: number
}

const { exports } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8')) as {
  exports: Record<string, { readonly default: string }>
}

function probe(what: 'count' | 'cost', path: string): Probed {
  const script = join(import.meta.dirname, 'import/probe.mjs')
  const env = { ...process.env, MANYWORLDS_WORKER: '1' }
  const url = pathToFileURL(join(folder, path)).href
  const printed = execFileSync(process.execPath, ['--expose-gc', script, what, url], { encoding: 'utf8', env })
  return JSON.parse(printed.trim().split('\n').at(-1)!) as Probed
}

console.log(`median of ${ROUNDS} processes\n`)
console.log('| import | modules | packages | CPU, ms | RSS, MB | heap, MB |')
console.log('| --- | ---: | --- | ---: | ---: | ---: |')
for (const [name, target] of Object.entries(exports)) {
  if (LEFT_OUT.includes(name)) continue
  const { modules, packages } = probe('count', target.default)
  const costs = Array.from({ length: ROUNDS }, () => probe('cost', target.default))
  const figure = (key: 'cpuMs' | 'rssMb' | 'heapMb') => median(costs.map((cost) => cost[key])).toFixed(1)
  console.log(
    `| \`manyworlds${name.slice(1)}\` | ${modules} | ${packages.join(', ')} | ${figure('cpuMs')} | ${figure('rssMb')} | ${figure('heapMb')} |`,
  )
}
console.log(`\n${describeMachine()}`)
