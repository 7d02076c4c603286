import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Runners } from 'manyworlds'
import { deskTasks } from '../../examples/tool-desk/desk.ts'
import { numberOf } from '../figures.ts'
import { makespan } from '../makespan.ts'
import { cpuBetween, readTree } from '../pools/cpu.ts'
import { slowClerk } from './worlds.ts'

const EPISODES = numberOf('--episodes', 16_384)
const IN_FLIGHT = 1024
const WORKERS = 2
const SAMPLE = 12
const LIMIT = 0.87

/** Many episodes at once in a world that takes 50 to 150 ms a step: against one after the other, and against the ideal. */
export async function flight(): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'manyworlds-steps-'))
  const inputs = deskTasks({ part: 'train', count: EPISODES, seed: 2 })
  const tasksOf = (count: number) => inputs.slice(0, count).map((input) => slowClerk.task(input))

  // Every 1,365th or so, so that the sample has long and short ones.
  const sample = inputs.filter((_, index) => index % Math.floor(EPISODES / SAMPLE) === 0).slice(0, SAMPLE)
  await Runners.runTask(tasksOf(1), { workerNum: 1, store: folder })
  const alone = await timed(
    sample.map((input) => slowClerk.task(input)),
    { workerNum: 1, concurrency: 1, store: folder },
  )
  await Runners.shutdown()

  const config = { workerNum: WORKERS, concurrency: IN_FLIGHT / WORKERS, keepWarmMs: 600_000, store: folder }
  await Runners.runTask(tasksOf(WORKERS * 4), config)
  const all = await timed(tasksOf(EPISODES), config)
  await Runners.shutdown()
  rmSync(folder, { recursive: true })

  const sum = (list: readonly number[]) => list.reduce((a, b) => a + b, 0)
  // Episodes differ in length and latency, so the sample is scaled by how long its steps wait, and not by how many there are.
  const sequential = (alone.seconds / sum(alone.drawn)) * sum(all.drawn)
  const ideal = makespan(all.drawn, IN_FLIGHT)
  const idealMeasured = makespan(all.measured, IN_FLIGHT)
  const times = (speedUp: number) => `${speedUp.toFixed(0)}x`
  const percent = (part: number) => `${(100 * part).toFixed(1)} %`
  console.log(
    `${EPISODES} episodes of the tool desk, ${all.steps} steps of 50 to 150 ms, ${IN_FLIGHT} in flight, run file on`,
  )
  console.log(
    `one after the other: ${alone.seconds.toFixed(1)} s for ${SAMPLE}, so about ${sequential.toFixed(0)} s for all (extrapolated)`,
  )
  console.log(
    `in flight: ${all.seconds.toFixed(2)} s (measured), speed-up ${times(sequential / all.seconds)}; CPU ${all.cpu.toFixed(0)} us a step`,
  )
  console.log(
    `ideal schedule: ${ideal.toFixed(2)} s with the latencies drawn, ${idealMeasured.toFixed(2)} s with those measured; speed-up ${times(sum(all.drawn) / ideal)}`,
  )
  console.log(
    `of the ideal: ${percent(ideal / all.seconds)} with the latencies drawn, ${percent(idealMeasured / all.seconds)} with those measured; at least ${percent(LIMIT)}`,
  )
  if (ideal / all.seconds < LIMIT) process.exitCode = 1
}

async function timed(tasks: ReturnType<typeof slowClerk.task>[], config: object) {
  const began = performance.now()
  const drawn: number[] = []
  const measured: number[] = []
  let steps = 0
  const before = readTree(process.pid)
  for await (const { answer } of Runners.streamTask(tasks, config)) {
    if (answer?.steps === undefined) throw new Error('an episode failed')
    drawn.push(answer.drawnMs! / 1000)
    measured.push(answer.measuredMs! / 1000)
    steps += answer.steps
  }
  const seconds = (performance.now() - began) / 1000
  const cpu = cpuBetween(before, readTree(process.pid)) / steps
  return { seconds, cpu, drawn, measured, steps }
}
