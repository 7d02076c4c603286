import { fork } from 'node:child_process'
import { once } from 'node:events'
import type { LimiterSettings } from '../src/models/driver/limiter.ts'
import { numberOf } from './figures.ts'
import { type Gate, inspectRule } from './limiter/gates.ts'
import { callFromProcesses } from './limiter/processes.ts'
import { callFromRuns } from './limiter/runs.ts'
import type { Seen } from './limiter/server.ts'
import { describeMachine } from './machine.ts'

/**
 * How much of a server's limit is used, and how many requests it refuses: 2,000 calls against a server that takes 40 requests in any
 * second. Ours come from four workers on two engines, the others from four processes. The server does the counting.
 *
 *   node bench/limiter.ts [--calls N] [--only part-of-a-name]
 */
const CALLS = numberOf('--calls', 2000)
const at = process.argv.indexOf('--only')
const only = at < 0 ? '' : process.argv[at + 1]!
const PER_SECOND = 40
const TOKENS_PER_SECOND = 4000
/** A limiter that does not know the limit has found it by then. */
const LATER_MS = 10_000

interface Row {
  readonly name: string
  /** What processes have to pass; undefined: each does what it likes. */
  readonly gate?: () => Gate | undefined
  /** Workers have to pass the limiter of a model with these limits. */
  readonly limits?: LimiterSettings
  readonly tokens?: boolean
}

const requestsPerMinute = PER_SECOND * 60
const tokensPerMinute = TOKENS_PER_SECOND * 60
const ROWS: readonly Row[] = [
  { name: 'p-limit(32), backoff with jitter', gate: () => undefined },
  { name: "Inspect's rule, backoff with jitter", gate: inspectRule },
  { name: 'manyworlds, limit known', limits: { requestsPerMinute } },
  { name: 'manyworlds, limit unknown', limits: {} },
  { name: 'manyworlds, tokens too', limits: { requestsPerMinute, tokensPerMinute }, tokens: true },
]

console.log(`${CALLS} calls from 4 workers on 2 engines, or 4 processes; ${PER_SECOND} requests in any second\n`)
console.log('| | seconds | use | 429 | 429 after 10 s |\n|---|---:|---:|---:|---:|')
for (const row of ROWS) if (row.name.includes(only)) console.log(await measure(row))
console.log(`\n${describeMachine()}`)

async function measure({ name, gate, limits: ours, tokens = false }: Row): Promise<string> {
  const limits = [PER_SECOND, tokens ? TOKENS_PER_SECOND : Number.POSITIVE_INFINITY].map(String)
  const server = fork(new URL('limiter/server.ts', import.meta.url), limits)
  try {
    const [port] = (await once(server, 'message')) as [number]
    const settings = { url: `http://127.0.0.1:${port}/`, calls: CALLS, tokens }
    if (ours) await callFromRuns(ours, settings)
    else await callFromProcesses(gate?.(), { ...settings, backoff: true })
    const answer = once(server, 'message')
    server.send('what have you seen?')
    const [seen] = (await answer) as [Seen[]]
    return `| ${name} | ${figuresOf(seen, tokens).join(' | ')} |`
  } finally {
    server.kill()
  }
}

function figuresOf(seen: readonly Seen[], tokens: boolean): string[] {
  const began = seen[0]!.at
  const accepted = seen.filter((one) => one.tokens >= 0)
  if (accepted.length !== CALLS) throw new Error(`${accepted.length} of ${CALLS} calls were accepted`)
  const seconds = (accepted.at(-1)!.at - began) / 1000
  const done = tokens ? accepted.reduce((sum, one) => sum + one.tokens, 0) : accepted.length
  const use = done / (seconds * (tokens ? TOKENS_PER_SECOND : PER_SECOND))
  const late = seen.filter((one) => one.at - began > LATER_MS)
  return [seconds.toFixed(1), `${(use * 100).toFixed(1)} %`, refusedOf(seen), refusedOf(late)]
}

function refusedOf(seen: readonly Seen[]): string {
  const refused = seen.filter((one) => one.tokens < 0).length
  return seen.length === 0 ? '' : `${((100 * refused) / seen.length).toFixed(2)} %`
}
