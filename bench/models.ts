import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type RunConfig, Runners } from 'manyworlds'
import { startModelServer } from '../test/models/scripted-server.ts'
import { median, numberOf } from './figures.ts'
import { describeMachine } from './machine.ts'
import { byHand, caller, solver } from './models/agents.ts'
import { cpuBetween, readTree } from './pools/cpu.ts'

/**
 * What calls of models cost: a step of `llmAgent` beside the AI SDK's agent by hand, and calls per second through one driver and
 * directly from workers. CPU of all processes but the server's.
 *
 *   node bench/models.ts [--rounds N] [--episodes N] [--calls N]
 */
const ROUNDS = numberOf('--rounds', 5)
const EPISODES = numberOf('--episodes', 60)
const CALLS = numberOf('--calls', 4000)
/** Calls of the model in an episode: nine of a tool, and the answer. */
const TURNS = 10

const folder = mkdtempSync(join(tmpdir(), 'bench-models-'))
const server = await startModelServer()
const { baseURL } = server
const model = `tools:${TURNS - 1}`
const base: RunConfig = { workerNum: 2, concurrency: 32, store: false, keepWarmMs: 600_000 }
const through = (via: 'driver' | 'direct', model: string): RunConfig => ({
  ...base,
  models: { m: { baseURL, model, via, maxConcurrent: 256, requestsPerMinute: 100_000_000 } },
})

const hand = byHand.withParams({ baseURL, model })
const ways: Readonly<Record<string, () => Promise<unknown>>> = {
  'by hand': () => Runners.runTask(episodes(hand.task), base),
  'llmAgent, direct': () => Runners.runTask(episodes(solver.task), through('direct', model)),
  'llmAgent, through the driver': () => Runners.runTask(episodes(solver.task), through('driver', model)),
}

/** Of each way, microseconds of CPU per step. */
const costs = new Map(Object.keys(ways).map((name) => [name, [] as number[]]))
for (let round = -1; round < ROUNDS; round++)
  for (const [name, run] of Object.entries(ways)) {
    const { cpu } = await measured(run)
    // The first round warms up.
    if (round >= 0) costs.get(name)!.push(cpu / (EPISODES * TURNS))
  }
const plain = median(costs.get('by hand')!)
console.log(`${EPISODES} episodes of ${TURNS} calls with a tool between them; 2 workers, median of ${ROUNDS} rounds\n`)
console.log('| | CPU us per step | beside by hand |\n|---|---:|---:|')
for (const [name, rounds] of costs)
  console.log(`| ${name} | ${Math.round(median(rounds))} | ${(median(rounds) / plain).toFixed(2)} |`)

console.log(`\n${CALLS} calls of ctx.generate, 64 at once, median of ${ROUNDS} rounds\n`)
console.log('| | calls per second | CPU us per call |\n|---|---:|---:|')
for (const [name, via, store] of [
  ['direct', 'direct', false],
  ['through the driver', 'driver', false],
  ['direct, recorded', 'direct', true],
  ['through the driver, recorded', 'driver', true],
] as const) {
  const rounds: { cpu: number; seconds: number }[] = []
  for (let round = -1; round < ROUNDS; round++) {
    const one = await measured(() =>
      Runners.runTask(calls(), { ...through(via, 'text'), ...(store && { store: folder }) }),
    )
    if (round >= 0) rounds.push(one)
  }
  const rate = Math.round(CALLS / median(rounds.map(({ seconds }) => seconds)))
  const cpu = Math.round(median(rounds.map((one) => one.cpu)) / CALLS)
  console.log(`| ${name} | ${rate.toLocaleString('en')} | ${cpu} |`)
}
await Runners.shutdown()
await server.close()
rmSync(folder, { recursive: true })
console.log(`\n${describeMachine()}`)

function episodes<Task>(task: (input: string) => Task): Task[] {
  return Array.from({ length: EPISODES }, (_, n) => task(`episode ${n}`))
}

function calls() {
  const tasks = 64
  return Array.from({ length: tasks }, () => caller.task(CALLS / tasks))
}

async function measured(run: () => Promise<unknown>): Promise<{ cpu: number; seconds: number }> {
  const before = [readTree(process.pid), readTree(server.pid)] as const
  const began = performance.now()
  await run()
  const seconds = (performance.now() - began) / 1000
  const all = cpuBetween(before[0], readTree(process.pid))
  return { cpu: all - cpuBetween(before[1], readTree(server.pid)), seconds }
}
