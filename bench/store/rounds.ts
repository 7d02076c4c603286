import { mkdtempSync, readdirSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { type RunConfig, Runners } from 'manyworlds'
import { fiveSteps } from '../agents.ts'
import { median, numberOf } from '../figures.ts'
import { cpuBetween, readTree } from '../pools/cpu.ts'

/** CPU of the whole process tree for tasks with five steps, with and without a store, in interleaved rounds; and its size. */
export async function rounds(): Promise<void> {
  const tasks = numberOf('--tasks', 100_000)
  const count = numberOf('--rounds', 5)
  const folder = mkdtempSync(join(tmpdir(), 'manyworlds-bench-'))
  const modes: Record<string, RunConfig> = {
    'no store': { store: false },
    store: { store: folder },
    "store, durability 'full'": { store: folder, durability: 'full' },
  }
  const figures = new Map(Object.keys(modes).map((name) => [name, { cpu: [] as number[], seconds: [] as number[] }]))
  let bytesPerTask = 0
  await measure({ store: false }, 20_000)
  for (let round = 0; round < count; round++)
    for (const [name, config] of Object.entries(modes)) {
      const { cpu, seconds, bytes } = await measure(config, tasks)
      figures.get(name)!.cpu.push(cpu)
      figures.get(name)!.seconds.push(seconds)
      bytesPerTask = Math.max(bytesPerTask, bytes / tasks)
    }
  rmSync(folder, { recursive: true })
  console.log(
    `${tasks.toLocaleString('en')} tasks with five steps each, 2 workers, median of ${count} interleaved rounds\n`,
  )
  const plain = median(figures.get('no store')!.cpu)
  console.log('| | CPU us per task | of no store | tasks per second |\n|---|---:|---:|---:|')
  for (const [name, { cpu, seconds }] of figures) {
    const perSecond = Math.round(tasks / median(seconds)).toLocaleString('en')
    console.log(`| ${name} | ${median(cpu).toFixed(1)} | ${(median(cpu) / plain).toFixed(2)} | ${perSecond} |`)
  }
  console.log(`\nsize: ${Math.round(bytesPerTask)} bytes per task`)
}

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
  const bytes = typeof config.store === 'string' ? sizeOf(config.store) : 0
  if (typeof config.store === 'string') await forget(config.store)
  return { cpu: cpuBetween(before, after) / count, seconds, bytes }
}

const files = (folder: string) => readdirSync(folder).map((name) => join(folder, name))
const sizeOf = (folder: string) => files(folder).reduce((sum, file) => sum + statSync(file).size, 0)

/** The thread keeps a store open for a while; a new one is made under the same name then. */
async function forget(folder: string): Promise<void> {
  await sleep(1500)
  for (const file of files(folder)) rmSync(file, { force: true })
}
