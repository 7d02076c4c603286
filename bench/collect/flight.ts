import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { loadavg, tmpdir } from 'node:os'
import { join } from 'node:path'
import { Runners } from 'manyworlds'
import type { Trajectory } from 'manyworlds/runs'
import { compareRollouts, ParallelTaskExecutor } from 'manyworlds/train'
import { deskTasks } from '../../examples/tool-desk/desk.ts'
import { median, numberOf } from '../figures.ts'
import { makespan } from '../makespan.ts'
import { cpuBetween, readTree } from '../pools/cpu.ts'
import { briskClerk, type SlowObservation, slowClerk } from '../steps/worlds.ts'

const ROUNDS = numberOf('--rounds', 3)
const ROLLOUTS = 8
const WORKERS = 2
/** Of the speed-up that an ideal schedule has. */
const LIMIT = 0.87

const FLIGHTS = [
  { agent: briskClerk, step: '5 to 20 ms', episodes: 4096, inFlight: 64 },
  { agent: slowClerk, step: '50 to 150 ms', episodes: 16_384, inFlight: 1024 },
] as const
type Flight = (typeof FLIGHTS)[number]

interface Figures {
  readonly seconds: number
  /** CPU of the whole process tree, in seconds. */
  readonly cpu: number
  /** How long the main thread of the driver waited for a core: other programs had them. */
  readonly waited: number
  /** Against one episode after the other, by the latencies that were drawn, and what of the ideal schedule's that is. */
  readonly speedUp: number
  readonly share: number
  /** The same share by what the steps took, late timers included. */
  readonly shareOfMeasured: number
}

/** How well the collection of episodes that wait is spread: trajectories of the tool desk, run file on, by the `ParallelTaskExecutor`. */
export async function flight(): Promise<void> {
  console.log(`\nCollection, run file on, ${WORKERS} workers, median of ${ROUNDS} rounds`)
  console.log(
    '\n| episodes | in flight | a step | seconds | CPU s | waited for a core, s | speed-up | of the ideal | by measured waits |',
  )
  console.log('|---:|---:|---|---:|---:|---:|---:|---:|---:|')
  for (const one of FLIGHTS) {
    const rounds: Figures[] = []
    for (let round = 0; round < ROUNDS; round++) rounds.push(await collect(one))
    const of = (key: keyof Figures) => median(rounds.map((figures) => figures[key]))
    const percent = (key: 'share' | 'shareOfMeasured') => `${(100 * of(key)).toFixed(1)} %`
    console.log(
      `| ${one.episodes} | ${one.inFlight} | ${one.step} | ${of('seconds').toFixed(2)} | ${of('cpu').toFixed(1)} | ${of('waited').toFixed(1)} | ${of('speedUp').toFixed(0)}x | ${percent('share')} | ${percent('shareOfMeasured')} |`,
    )
    if (of('share') < LIMIT) process.exitCode = 1
  }
  console.log(`\nAt least ${LIMIT * 100} % of the ideal; load of the machine: ${loadavg()[0]!.toFixed(1)}`)
}

async function collect({ agent, episodes, inFlight }: Flight): Promise<Figures> {
  const store = mkdtempSync(join(tmpdir(), 'manyworlds-collect-'))
  const inputs = deskTasks({ part: 'train', count: episodes / ROLLOUTS, seed: 2 })
  const executor = new ParallelTaskExecutor({
    ...{ agent, store, workerNum: WORKERS, concurrency: inFlight / WORKERS, rollouts: ROLLOUTS, keepWarmMs: 600_000 },
  })
  const all = inputs.map((input, place) => ({ id: `t${String(place).padStart(5, '0')}`, input }))
  // Starts the workers.
  for await (const _ of executor.distributeTasks(all.slice(0, WORKERS)));

  const waitedBefore = waitedForCore()
  const before = readTree(process.pid)
  const began = performance.now()
  const trajectories: Trajectory[] = []
  for await (const trajectory of executor.distributeTasks(all)) trajectories.push(trajectory)
  const seconds = (performance.now() - began) / 1000
  const cpu = cpuBetween(before, readTree(process.pid)) / 1e6
  const waited = waitedForCore() - waitedBefore
  await Runners.shutdown()
  rmSync(store, { recursive: true })

  if (trajectories.length !== episodes) throw new Error(`${trajectories.length} of ${episodes} episodes`)
  // In the order in which they were given.
  const waits = trajectories.sort(compareRollouts).map(({ answer }) => answer as SlowObservation)
  const drawn = waits.map(({ drawnMs }) => drawnMs! / 1000)
  const measured = waits.map(({ measuredMs }) => measuredMs! / 1000)
  return {
    ...{ seconds, cpu, waited, speedUp: drawn.reduce((sum, one) => sum + one, 0) / seconds },
    share: makespan(drawn, inFlight) / seconds,
    shareOfMeasured: makespan(measured, inFlight) / seconds,
  }
}

/** Seconds that this thread could have run and was not let, by what the kernel says. */
function waitedForCore(): number {
  return Number(readFileSync('/proc/thread-self/schedstat', 'utf8').split(' ')[1]) / 1e9
}
