import { mkdtempSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type RunConfig, Runners } from 'manyworlds'
import { fiveSteps } from './agents.ts'
import { median, numberOf } from './figures.ts'
import { describeMachine } from './machine.ts'
import { cpuBetween, readTree } from './pools/cpu.ts'

/**
 * What the run file costs: CPU microseconds per task of the whole process tree, for tasks with a trajectory of five
 * steps, with and without a file, in interleaved rounds; and the size of the file.
 *
 *   node bench/store.ts [--tasks N] [--rounds N]
 */
const TASKS = numberOf('--tasks', 100_000)
const ROUNDS = numberOf('--rounds', 3)
const folder = mkdtempSync(join(tmpdir(), 'manyworlds-bench-'))

const modes: Record<string, RunConfig> = {
  'no file': { store: false },
  'run file': { store: folder },
  "run file, durability 'full'": { store: folder, durability: 'full' },
}
const figures = new Map(Object.keys(modes).map((name) => [name, { cpu: [] as number[], seconds: [] as number[] }]))
let bytesPerTask = 0

await measure({ store: false }, 20_000)
for (let round = 0; round < ROUNDS; round++)
  for (const [name, config] of Object.entries(modes)) {
    const { cpu, seconds, bytes } = await measure(config, TASKS)
    figures.get(name)!.cpu.push(cpu)
    figures.get(name)!.seconds.push(seconds)
    bytesPerTask = Math.max(bytesPerTask, bytes / TASKS)
  }
rmSync(folder, { recursive: true })

console.log(
  `${TASKS.toLocaleString('en')} tasks with five steps each, 2 workers, median of ${ROUNDS} interleaved rounds\n`,
)
console.log('| | CPU us per task | tasks per second |\n|---|---:|---:|')
for (const [name, { cpu, seconds }] of figures)
  console.log(`| ${name} | ${median(cpu).toFixed(1)} | ${Math.round(TASKS / median(seconds)).toLocaleString('en')} |`)
console.log(`\nfile size: ${Math.round(bytesPerTask)} bytes per task`)
console.log(describeMachine())

async function measure(config: RunConfig, count: number): Promise<{ cpu: number; seconds: number; bytes: number }> {
  const tasks = Array.from({ length: count }, (_, id) =>
    fiveSteps.task({ id, question: 'What is it that was asked here?' }, { id: `task-${id}` }),
  )
  const runId = `bench-${performance.now().toFixed(0)}`
  const before = readTree(process.pid)
  const began = performance.now()
  let answered = 0
  for await (const { success } of Runners.streamTask(tasks, { workerNum: 2, runId, ...config })) if (success) answered++
  const seconds = (performance.now() - began) / 1000
  const after = readTree(process.pid)
  if (answered !== count) throw new Error(`${answered} of ${count} succeeded`)
  const bytes = config.store === false ? 0 : statSync(join(folder, `${runId}.sqlite`)).size
  rmSync(join(folder, `${runId}.sqlite`), { force: true })
  return { cpu: cpuBetween(before, after) / count, seconds, bytes }
}
