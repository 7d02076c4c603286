// Measures one pool at one thing: node bench/pools/driver.ts POOL MEASURE. A process of its own, so that no pool finds
// a heap or compiled code that another left behind. Prints microseconds of CPU per task, or milliseconds for `cold`.
import { type Adapter, adapters } from './adapters.ts'
import { cpuBetween, readTree } from './cpu.ts'
import { check, inFlightPerWorker, inputsOf, type Measure, type Workload, workers } from './workloads.ts'

const warmUpMs = 2500
const blockMs = 1500

async function coldStart(adapter: Adapter): Promise<number> {
  const inputs = inputsOf('noop', 1)
  const start = performance.now()
  const pool = await adapter.open(workers, inFlightPerWorker)
  const answers = await pool.run('noop', inputs)
  const ms = performance.now() - start
  check('noop', inputs[0], answers[0])
  await pool.close()
  return ms
}

async function cpuPerTask(adapter: Adapter, workload: Workload): Promise<number> {
  const inputs = inputsOf(workload, adapter.chunk[workload])
  const pool = await adapter.open(workers, inFlightPerWorker)
  const samples: { at: number; answer: unknown }[] = []

  async function block(name: Workload, ms: number): Promise<number> {
    const end = performance.now() + ms
    let done = 0
    do {
      const answers = await pool.run(name, inputs)
      if (answers.length !== inputs.length) throw new Error(`${answers.length} answers to ${inputs.length} tasks`)
      done += answers.length
      // One answer of each round is kept, another one each time, and looked at when the measurement is over.
      const at = samples.length % inputs.length
      if (name === workload) samples.push({ at, answer: answers[at] })
    } while (performance.now() < end)
    return done
  }

  // Sleeping is too slow to warm up a pool that has one task at a time, so two seconds of no-ops do it.
  if (workload === 'sleep') await block('noop', 2000)
  await block(workload, warmUpMs)
  const before = readTree(process.pid)
  const done = await block(workload, blockMs)
  const after = readTree(process.pid)
  for (const { at, answer } of samples) check(workload, inputs[at], answer)
  await pool.close()
  return cpuBetween(before, after) / done
}

const [name, measure] = process.argv.slice(2) as [string, Measure]
const adapter = adapters.find((candidate) => candidate.name === name)
if (!adapter) throw new Error(`no pool is called ${name}`)
console.log(await (measure === 'cold' ? coldStart(adapter) : cpuPerTask(adapter, measure)))
