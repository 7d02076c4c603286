import { type RunConfig, Runners } from 'manyworlds'
import { startNode } from '../test/nodes/daemon.ts'
import { noop, requester } from './agents.ts'
import { median, numberOf } from './figures.ts'
import { describeMachine } from './machine.ts'
import { cpuBetween, readTree } from './pools/cpu.ts'

/**
 * What a request and its answer cost: CPU of the whole process tree, and how long they take, with one in flight and with a
 * thousand, on each engine.
 *
 *   node bench/requests.ts [--engines local,nodes,ray,spark] [--rounds N]
 */
const ROUNDS = numberOf('--rounds', 5)
const at = process.argv.indexOf('--engines')
const wanted = at < 0 ? ['local', 'nodes', 'ray', 'spark'] : process.argv[at + 1]!.split(',')
/** A task may have 64 open. */
const LOADS = [
  { name: '1', tasks: 1, atOnce: 1, requests: 3000 },
  { name: '1,000', tasks: 20, atOnce: 50, requests: 3000 },
]

console.log(`a question of 100 characters, echoed; 2 workers, median of ${ROUNDS} rounds\n`)
console.log(
  '| engine | in flight | CPU us per request | p50 us | p99 us | requests per second |\n|---|---:|---:|---:|---:|---:|',
)
for (const name of wanted) {
  const { config, close } = await placeOf(name)
  await Runners.runTask(noop.task({ id: 0, text: '' }), config)
  for (const load of LOADS) {
    await measure(config, load)
    const rounds: Awaited<ReturnType<typeof measure>>[] = []
    for (let round = 0; round < ROUNDS; round++) rounds.push(await measure(config, load))
    const of = (key: keyof (typeof rounds)[number]) => median(rounds.map((one) => one[key]))
    const figures = [Math.round(of('cpu') * 10) / 10, of('p50'), of('p99'), Math.round(of('rate'))]
    console.log(`| ${name} | ${load.name} | ${figures.map((figure) => figure.toLocaleString('en')).join(' | ')} |`)
  }
  await Runners.shutdown()
  await close()
}
console.log(`\n${describeMachine()}`)

async function placeOf(name: string): Promise<{ config: RunConfig; close: () => Promise<unknown> }> {
  const base = {
    store: false,
    workerNum: 2,
    concurrency: 64,
    keepWarmMs: 600_000,
    services: { echo: (text: string) => text },
  } as const
  if (name === 'nodes') {
    const node = await startNode({ args: ['--workers', '2'] })
    const config = { ...base, engineName: 'nodes', nodes: { addresses: [node.address] } } as const
    return { config, close: () => node.kill('SIGTERM') }
  }
  const local = name === 'local'
  return { config: { ...base, engineName: name as 'local', inLocal: !local }, close: async () => {} }
}

async function measure(config: RunConfig, { tasks, atOnce, requests }: (typeof LOADS)[number]) {
  const before = readTree(process.pid)
  const began = performance.now()
  const responses = await Runners.runTask(
    Array.from({ length: tasks }, () => requester.task({ requests: requests / (tasks === 1 ? 1 : 4), atOnce })),
    config,
  )
  const seconds = (performance.now() - began) / 1000
  const took = [...responses.values()].flatMap(({ answer }) => answer!).toSorted((a, b) => a - b)
  return {
    cpu: cpuBetween(before, readTree(process.pid)) / took.length,
    p50: took[took.length >> 1]!,
    p99: took[Math.floor(took.length * 0.99)]!,
    rate: took.length / seconds,
  }
}
