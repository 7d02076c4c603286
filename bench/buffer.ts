import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { Runners } from 'manyworlds'
import { RunFile, type Trajectory } from 'manyworlds/runs'
import { ExperienceBuffer } from '../dist/train/experience-buffer.js'
import { clerk, deskTasks } from '../examples/tool-desk/desk.ts'
import { median, numberOf } from './figures.ts'
import { describeMachine } from './machine.ts'

/**
 * What an ExperienceBuffer costs, filled with real episodes of the tool desk from a run file: memory, and the time of adding and sampling.
 *
 *   node bench/buffer.ts [--trajectories N] [--group N]
 */
const GROUP = numberOf('--group', 8)
const TASKS = Math.ceil(numberOf('--trajectories', 100_000) / GROUP)
/** Trajectories that are held as objects, for comparison. */
const FEW = 8_000
const BATCH = 128
const ROUNDS = 200

setFlagsFromString('--expose-gc')
const gc = runInNewContext('gc') as () => void

const folder = mkdtempSync(join(tmpdir(), 'manyworlds-buffer-'))
try {
  await measure(join(folder, 'desk.sqlite'))
} finally {
  rmSync(folder, { recursive: true })
}
console.log(`\n${describeMachine()}`)

async function measure(store: string): Promise<void> {
  const collecting = performance.now()
  const tasks = deskTasks({ part: 'train', count: TASKS, seed: 1 }).map((input) => clerk.task(input))
  for await (const _ of Runners.streamTask(tasks, { workerNum: 2, store, rollouts: GROUP }));
  await Runners.shutdown()
  console.log(`${TASKS * GROUP} episodes of the tool desk in groups of ${GROUP}, collected in ${seconds(collecting)} s`)

  using run = RunFile.open(store)
  const few: Trajectory[] = []
  for await (const trajectory of run.trajectories()) if (few.push(trajectory) === FEW) break
  const steps = few.reduce((sum, one) => sum + one.steps.length, 0) / few.length
  const json = few.reduce((sum, one) => sum + JSON.stringify(one).length, 0) / few.length
  console.log(`each: ${steps.toFixed(1)} steps, ${json.toFixed(0)} bytes as JSON`)

  const before = memory()
  const filling = performance.now()
  const cpu = process.cpuUsage()
  const buffer = await ExperienceBuffer.fromRun(run)
  const { user, system } = process.cpuUsage(cpu)
  const each = (user + system) / buffer.size
  console.log(
    `\nfilled from the run file in ${seconds(filling)} s; ${each.toFixed(0)} us of CPU each, reading included`,
  )
  const bytes = memory() - before
  const { size, groups, packedBytes } = buffer.stats()
  console.log(
    `memory: ${mb(bytes)} MB for ${size} trajectories in ${groups} groups, ${(bytes / size).toFixed(0)} bytes each;`,
  )
  console.log(`  packed groups are ${mb(packedBytes)} MB of it`)
  asObjects(few)

  console.log(`\nadding, CPU per trajectory: ${adding(few, Number.POSITIVE_INFINITY)} us as long as it is not packed;`)
  console.log(`  ${adding(few, 0)} us with packing; ${adding(few, 0, 80)} us if each group also evicts another`)
  console.log(`CPU for a sample of ${BATCH} from ${size}: ${sampling(buffer)} ms, the mean of ${ROUNDS}`)
  const small = new ExperienceBuffer({ unpacked: Number.POSITIVE_INFINITY })
  small.addBatch(few)
  small.closeGroups()
  console.log(`  from ${small.size} that are not packed: ${sampling(small)} ms`)
}

/** What the same trajectories take as they came. */
function asObjects(few: readonly Trajectory[]): void {
  const before = memory()
  const copies = structuredClone(few.map((one) => ({ ...one })))
  const bytes = memory() - before
  console.log(`as objects: ${(bytes / copies.length).toFixed(0)} bytes each (${copies.length} measured)`)
}

function adding(few: readonly Trajectory[], unpacked: number, capacity = 100_000): string {
  const times = [1, 2, 3].map(() => {
    const buffer = new ExperienceBuffer({ capacity, unpacked, groupSize: GROUP })
    return cpuMs(() => {
      for (const trajectory of few) buffer.addTrajectory(trajectory)
    })
  })
  return ((median(times) * 1000) / few.length).toFixed(1)
}

function sampling(buffer: ExperienceBuffer): string {
  buffer.computeReturns(0.99)
  return (cpuMs(() => Array.from({ length: ROUNDS }, () => buffer.sampleBatch(BATCH).length)) / ROUNDS).toFixed(2)
}

/** Milliseconds of CPU, collection of garbage included: another program on the machine does not show in it. */
function cpuMs(work: () => unknown): number {
  const before = process.cpuUsage()
  work()
  const { user, system } = process.cpuUsage(before)
  return (user + system) / 1000
}

/** Bytes in use, inside and outside of the heap, after a collection of garbage. */
function memory(): number {
  gc()
  gc()
  const { heapUsed, external } = process.memoryUsage()
  return heapUsed + external
}

function seconds(since: number): string {
  return ((performance.now() - since) / 1000).toFixed(1)
}

function mb(bytes: number): string {
  return (bytes / 1e6).toFixed(1)
}
