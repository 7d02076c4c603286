import { randomFillSync } from 'node:crypto'
import { LocalRuntime, type RunConfig, Runners } from 'manyworlds'
import { startNode } from '../test/nodes/daemon.ts'
import { loader, noop } from './agents.ts'
import { median, numberOf } from './figures.ts'
import { describeMachine } from './machine.ts'
import { cpuBetween, readTree } from './pools/cpu.ts'

/**
 * What it takes to bring a blob to four warm workers: from the call until the last of them has it, and CPU of the whole process
 * tree, on each engine. `link`: an engine that has no `putBlob`.
 *
 *   node bench/blobs.ts [--engines local,nodes,ray,spark,link] [--rounds N]
 */
const ROUNDS = numberOf('--rounds', 5)
const at = process.argv.indexOf('--engines')
const wanted = at < 0 ? ['local', 'nodes', 'ray', 'spark', 'link'] : process.argv[at + 1]!.split(',')
const WORKERS = 4
const SIZES_MB = [1, 10, 100]

console.log(`${WORKERS} workers, new bytes each time, median of ${ROUNDS} rounds\n`)
console.log('| engine | MB | ms until all have it | CPU s |\n|---|---:|---:|---:|')
for (const name of wanted) {
  const { config, close } = await placeOf(name)
  await warmUp(config)
  for (const mb of SIZES_MB) {
    await measure(config, mb)
    const rounds: Awaited<ReturnType<typeof measure>>[] = []
    for (let round = 0; round < ROUNDS; round++) rounds.push(await measure(config, mb))
    const ms = median(rounds.map((one) => one.ms))
    const cpu = median(rounds.map((one) => one.cpuSeconds))
    console.log(`| ${name} | ${mb} | ${Math.round(ms).toLocaleString('en')} | ${cpu.toFixed(2)} |`)
  }
  await Runners.shutdown()
  await close()
}
console.log(`\n${describeMachine()}`)

async function placeOf(name: string): Promise<{ config: RunConfig; close: () => Promise<unknown> }> {
  const base = { store: false, workerNum: WORKERS, concurrency: 1, keepWarmMs: 600_000 } as const
  const close = async () => {}
  if (name === 'nodes') {
    const node = await startNode({ args: ['--workers', String(WORKERS)] })
    const config = { ...base, engineName: 'nodes', nodes: { addresses: [node.address] } } as const
    return { config, close: () => node.kill('SIGTERM') }
  }
  if (name === 'link') {
    const engine = Object.assign(new LocalRuntime(), { putBlob: undefined, dropBlob: undefined })
    return { config: { ...base, cls: engine }, close }
  }
  return { config: { ...base, engineName: name as 'local', inLocal: name !== 'local' }, close }
}

/** Until every worker is there. */
async function warmUp(config: RunConfig): Promise<void> {
  const tasks = Array.from({ length: WORKERS * 4 }, (_, id) => noop.task({ id, text: '' }))
  for (const pids = new Set<unknown>(); pids.size < WORKERS; ) {
    const responses = await Runners.runTask(tasks, config)
    for (const { worker } of responses.values()) pids.add(worker?.pid)
  }
}

async function measure(config: RunConfig, mb: number): Promise<{ ms: number; cpuSeconds: number }> {
  const weights = randomFillSync(new Uint8Array(mb * 1_000_000))
  const all = Promise.withResolvers<void>()
  let have = 0
  // Those that have it wait for the others: so each worker has one.
  const services = {
    have: () => {
      if (++have === WORKERS) all.resolve()
      return all.promise
    },
  }
  const before = readTree(process.pid)
  const began = performance.now()
  const tasks = Array.from({ length: WORKERS }, () => loader.task('weights'))
  const run = Runners.runTask(tasks, { ...config, services, blobs: { weights } })
  await all.promise
  const ms = performance.now() - began
  const cpuSeconds = cpuBetween(before, readTree(process.pid)) / 1e6
  const pids = new Set([...(await run).values()].map(({ worker }) => worker?.pid))
  if (pids.size !== WORKERS) throw new Error(`${pids.size} workers had it, not ${WORKERS}`)
  return { ms, cpuSeconds }
}
