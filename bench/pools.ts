// What a task costs in manyworlds and in other pools of workers: npm run bench:pools
//
// The metric is the CPU time of the whole process tree per task, not the time on the clock: it is what the pool takes
// away from the work itself, and it does not depend on how many cores happen to be idle. Every measurement is a
// process of its own; pools take turns within each round, in another order each time, so that a machine that becomes
// slower or faster meanwhile does so for all of them.
import { spawn } from 'node:child_process'
import { cpus, totalmem } from 'node:os'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { adapters } from './pools/adapters.ts'
import { canReadTree } from './pools/cpu.ts'
import { type Results, ratios, table } from './pools/report.ts'
import { type Measure, measures, workers } from './pools/workloads.ts'

const timeoutMs = 60_000
const coldStartsPerRound = 2

function refuse(message: string, code: number): never {
  console.error(`bench:pools: ${message}`)
  process.exit(code)
}

/** A comma-separated list of some of the allowed names; all of them if the flag was left out. */
function choose<Name extends string>(flag: string, given: string | undefined, allowed: readonly Name[]): Name[] {
  const chosen = given === undefined ? [...allowed] : given.split(',')
  const unknown = chosen.find((name) => !allowed.some((known) => known === name))
  if (unknown !== undefined) refuse(`--${flag} ${unknown}: not one of ${allowed.join(', ')}`, 2)
  return allowed.filter((name) => chosen.some((wanted) => wanted === name))
}

function options() {
  const flags = {
    rounds: { type: 'string', default: '4' },
    only: { type: 'string' },
    workload: { type: 'string' },
    json: { type: 'boolean', default: false },
  } as const
  try {
    return parseArgs({ options: flags }).values
  } catch (error) {
    const usage = '--rounds N, --only POOL[,POOL], --workload WORKLOAD[,WORKLOAD], --json'
    return refuse(`${(error as Error).message.replace(/\. .*$/s, '')}; allowed are ${usage}`, 2)
  }
}

let running: number | undefined

/** Ends what is left of a measurement. Its processes are a group of their own, so that none can be forgotten. */
function sweep(): void {
  if (running === undefined) return
  try {
    process.kill(-running, 'SIGKILL')
  } catch {
    // Nothing was left.
  }
  running = undefined
}

function measure(pool: string, what: Measure): Promise<number> {
  return new Promise((resolve, reject) => {
    const driver = fileURLToPath(new URL('./pools/driver.ts', import.meta.url))
    const child = spawn(process.execPath, [driver, pool, what], { detached: true, stdio: ['ignore', 'pipe', 'pipe'] })
    running = child.pid
    const timer = setTimeout(sweep, timeoutMs)
    let out = ''
    let err = ''
    child.stdout.setEncoding('utf8').on('data', (text) => (out += text))
    child.stderr.setEncoding('utf8').on('data', (text) => (err += text))
    child.on('error', reject)
    // A worker that outlives the driver holds its pipes open; 'exit' does not wait for them.
    child.on('exit', sweep)
    child.on('close', (code) => {
      clearTimeout(timer)
      const value = Number.parseFloat(out)
      if (code === 0 && Number.isFinite(value)) return resolve(value)
      const why = err.match(/^(?:\S*Error|Warning).*$/m)?.[0] ?? err.trim().split('\n').at(-1)
      reject(new Error(code === null ? `ended after ${timeoutMs / 1000} s` : why || `exit code ${code}`))
    })
  })
}

/** In random order (Fisher and Yates). */
function shuffled<Item>(items: readonly Item[]): Item[] {
  const copy = [...items]
  for (let i = copy.length - 1; i > 0; i--) {
    const j = Math.floor(Math.random() * (i + 1))
    ;[copy[i], copy[j]] = [copy[j] as Item, copy[i] as Item]
  }
  return copy
}

const { rounds: roundsText, only, workload, json } = options()
const rounds = Number(roundsText)
if (!Number.isInteger(rounds) || rounds < 1) refuse(`--rounds ${roundsText}: not a whole number from 1 on`, 2)
const known = adapters.map((adapter) => adapter.name)
const names = choose('only', only, known)
const chosen = choose('workload', workload, measures)
if (!canReadTree) refuse('needs Linux: the CPU time of a process tree is read from /proc', 1)
for (const signal of ['SIGINT', 'SIGTERM'] as const) {
  process.on(signal, () => {
    sweep()
    process.exit(1)
  })
}

const pools = adapters.filter((adapter) => names.includes(adapter.name))
const results: Results = new Map(pools.map((pool) => [pool, { noop: [], echo: [], sleep: [], cold: [] }]))
let failed = false
for (let round = 1; round <= rounds; round++) {
  for (const what of chosen) {
    for (const pool of shuffled(pools)) {
      for (let i = 0; i < (what === 'cold' ? coldStartsPerRound : 1); i++) {
        const label = `round ${round}/${rounds}  ${what.padEnd(5)}  ${pool.name.padEnd(19)}`
        try {
          const value = await measure(pool.name, what)
          results.get(pool)?.[what].push(value)
          console.error(`${label}  ${value.toFixed(1)} ${what === 'cold' ? 'ms' : 'µs CPU/task'}`)
        } catch (error) {
          failed = true
          console.error(`${label}  failed: ${(error as Error).message}`)
        }
      }
    }
  }
}

const memory = Math.round(totalmem() / 2 ** 30)
const machine = `${cpus()[0]?.model ?? 'unknown CPU'}, ${cpus().length} cores, ${memory} GiB, Node ${process.version}`
if (json) {
  const list = [...results].map(([{ name, kind }, values]) => ({ name, kind, ...values }))
  console.log(JSON.stringify({ machine, workers, rounds, pools: list, ratios: ratios(results) }, null, 2))
} else {
  console.log(`${table(results, chosen)}\n\n${machine}; ${workers} workers, median of ${rounds} rounds\n`)
  for (const [label, ratio] of Object.entries(ratios(results)))
    console.log(`${label} = ${ratio?.toFixed(2) ?? 'not measured'}`)
}
if (failed) process.exitCode = 1
