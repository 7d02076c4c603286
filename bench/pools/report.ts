import { readFileSync } from 'node:fs'
import type { Adapter } from './adapters.ts'
import type { Measure } from './workloads.ts'

/** What was measured, a value per round, or none where the pool failed or was not asked. */
export type Results = Map<Adapter, Record<Measure, number[]>>

const titles: Record<Measure, string> = {
  noop: 'no-op, 200 B (µs)',
  echo: 'echo, 10 KB (µs)',
  sleep: 'sleep 20 ms (µs)',
  cold: 'cold start (ms)',
}

function median(values: readonly number[]): number | undefined {
  const sorted = values.toSorted((a, b) => a - b)
  const low = sorted[Math.ceil(sorted.length / 2) - 1]
  const high = sorted[Math.floor(sorted.length / 2)]
  return low === undefined || high === undefined ? undefined : (low + high) / 2
}

function version(name: string): string {
  const file = name === 'manyworlds' ? '../../package.json' : `../../node_modules/${name}/package.json`
  return JSON.parse(readFileSync(new URL(file, import.meta.url), 'utf8')).version
}

/** Markdown: a row for each pool; CPU time per task of the whole process tree, and the time to the first answer. */
export function table(results: Results, measures: readonly Measure[]): string {
  const head = ['pool', 'workers', ...measures.map((measure) => titles[measure])]
  const rule = head.map((_, i) => (i < 2 ? '---' : '---:'))
  const rows = [...results].map(([pool, values]) => [
    `${pool.name} ${version(pool.package)}`,
    pool.kind,
    ...measures.map((measure) => median(values[measure])?.toFixed(1) ?? 'failed'),
  ])
  return [head, rule, ...rows].map((cells) => `| ${cells.join(' | ')} |`).join('\n')
}

/** How many times as much CPU the best of the others takes as manyworlds does; above 1, manyworlds is cheaper. */
export function ratios(results: Results): Record<string, number | undefined> {
  const others = [...results].filter(([pool]) => pool.name !== 'manyworlds')
  const own = [...results].find(([pool]) => pool.name === 'manyworlds')?.[1]
  function ratio(kind: Adapter['kind'], measure: Measure): number | undefined {
    const mine = own && median(own[measure])
    const theirs = others.filter(([pool]) => pool.kind === kind).map(([, values]) => median(values[measure]))
    const measured = theirs.filter((value) => value !== undefined)
    return mine === undefined || measured.length === 0 ? undefined : Math.min(...measured) / mine
  }
  return {
    'no-op: best process pool / manyworlds': ratio('process', 'noop'),
    'no-op: best thread pool / manyworlds': ratio('thread', 'noop'),
    'sleep: best thread pool / manyworlds': ratio('thread', 'sleep'),
    'echo: best process pool / manyworlds': ratio('process', 'echo'),
  }
}
