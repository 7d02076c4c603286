import { type RunConfig, Runners } from 'manyworlds'
import { startNode } from '../test/nodes/daemon.ts'
import { noop, paced } from './agents.ts'
import { median, numberOf } from './figures.ts'
import { describeMachine } from './machine.ts'
import { cpuBetween, readTree } from './pools/cpu.ts'

/**
 * What it costs to have workers on nodes: no-op tasks over loopback against the local engine, in interleaved rounds; and
 * how well work is spread over nodes of different speed, against the ideal.
 *
 *   node bench/nodes.ts [--tasks N] [--rounds N]
 */
const TASKS = numberOf('--tasks', 100_000)
const ROUNDS = numberOf('--rounds', 7)

await throughput()
await speeds()
console.log(describeMachine())
await Runners.shutdown()

async function throughput(): Promise<void> {
  const node = await startNode({ args: ['--workers', '2'] })
  const engines: Record<string, RunConfig> = {
    local: { engineName: 'local' },
    'nodes, loopback': { engineName: 'nodes', nodes: { addresses: [node.address] } },
  }
  const figures = new Map(Object.keys(engines).map((name) => [name, { cpu: [] as number[], seconds: [] as number[] }]))
  for (const config of Object.values(engines)) await measure(config, TASKS)
  for (let round = 0; round < ROUNDS; round++)
    for (const [name, config] of Object.entries(engines)) {
      const { cpu, seconds } = await measure(config, TASKS)
      figures.get(name)!.cpu.push(cpu)
      figures.get(name)!.seconds.push(seconds)
    }
  await Runners.shutdown()
  await node.kill('SIGTERM')
  console.log(`${TASKS.toLocaleString('en')} no-op tasks, 2 workers, median of ${ROUNDS} interleaved rounds\n`)
  console.log('| | tasks per second | CPU us per task |\n|---|---:|---:|')
  for (const [name, { cpu, seconds }] of figures)
    console.log(`| ${name} | ${Math.round(TASKS / median(seconds)).toLocaleString('en')} | ${median(cpu).toFixed(1)} |`)
  const [local, nodes] = [...figures.values()].map(({ seconds }) => median(seconds))
  console.log(`\nnodes against local: ${(local! / nodes!).toFixed(2)}\n`)
}

async function measure(config: RunConfig, count: number): Promise<{ cpu: number; seconds: number }> {
  const before = readTree(process.pid)
  const began = performance.now()
  let answered = 0
  const tasks = Array.from({ length: count }, (_, id) => noop.task({ id, text: 'x'.repeat(100) }))
  for await (const { success } of Runners.streamTask(tasks, { workerNum: 2, store: false, ...config }))
    if (success) answered++
  const seconds = (performance.now() - began) / 1000
  if (answered !== count) throw new Error(`${answered} of ${count} succeeded`)
  return { cpu: cpuBetween(before, readTree(process.pid)) / count, seconds }
}

async function speeds(): Promise<void> {
  const SPEEDS = [1, 1, 4]
  const nodes = await Promise.all(
    SPEEDS.map((speed) =>
      startNode({
        args: ['--workers', '1', '--pass-env', 'BENCH_SPEED'],
        env: { ...process.env, BENCH_SPEED: String(speed) },
      }),
    ),
  )
  const addresses = nodes.map(({ address }) => address)
  const total = SPEEDS.reduce((sum, speed) => sum + speed, 0)
  console.log('nodes of 1x, 1x and 4x the speed, one worker each, median of 3 rounds\n')
  console.log(
    '| tasks | ms at 1x | tasks at once | seconds | ideal | ratio | done by each |\n|---:|---:|---:|---:|---:|---:|---|',
  )
  for (const [count, ms, concurrency] of [
    [240, 100, 1],
    [600, 40, 1],
    [60, 400, 1],
    [960, 100, 4],
  ] as const) {
    const config: RunConfig = { engineName: 'nodes', nodes: { addresses }, concurrency, store: false }
    const rounds: { seconds: number; split: number[] }[] = []
    for (let round = 0; round <= 3; round++) {
      const began = performance.now()
      const tasks = Array.from({ length: count }, () => paced.task(ms))
      const responses = await Runners.runTask(tasks, config)
      const seconds = (performance.now() - began) / 1000
      const split = addresses.map(
        (address) => [...responses.values()].filter(({ worker }) => worker?.id.startsWith(address)).length,
      )
      if (round > 0) rounds.push({ seconds, split })
    }
    const middle = rounds.toSorted((a, b) => a.seconds - b.seconds)[1]!
    const ideal = (count * ms) / total / concurrency / 1000
    console.log(
      `| ${count} | ${ms} | ${concurrency} | ${middle.seconds.toFixed(2)} | ${ideal.toFixed(2)} | ${(middle.seconds / ideal).toFixed(2)} | ${middle.split.join(', ')} |`,
    )
  }
  await Runners.shutdown()
  await Promise.all(nodes.map((node) => node.kill('SIGTERM')))
  console.log()
}
