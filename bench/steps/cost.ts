import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Runners } from 'manyworlds'
import { median, numberOf } from '../figures.ts'
import { cpuBetween, readTree } from '../pools/cpu.ts'
import { counter, countingAgent } from './worlds.ts'

const ROUNDS = numberOf('--rounds', 5)
const EPISODES = 2000
const STEPS = 50

/** CPU of a step of a trivial step agent, all processes and threads together, beside a plain loop in this process. */
export async function cost(): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'manyworlds-steps-'))
  const run = (store: string | false) => async () => {
    const tasks = Array.from({ length: EPISODES }, () => countingAgent.task({ steps: STEPS }))
    const responses = await Runners.runTask(tasks, { workerNum: 2, store, keepWarmMs: 600_000 })
    for (const { status } of responses.values()) if (status !== 'success') throw new Error(status)
  }
  const ways = { 'a plain loop': plainLoop, 'step agent, no store': run(false), 'step agent, run file': run(folder) }
  const us = new Map(Object.keys(ways).map((name) => [name, [] as number[]]))
  for (let round = 0; round <= ROUNDS; round++)
    for (const [name, way] of Object.entries(ways)) {
      const before = readTree(process.pid)
      await way()
      // The first round starts the workers.
      if (round > 0) us.get(name)!.push(cpuBetween(before, readTree(process.pid)) / (EPISODES * STEPS))
    }
  await Runners.shutdown()
  rmSync(folder, { recursive: true })
  console.log(`${EPISODES} episodes of ${STEPS} steps, 2 workers, median of ${ROUNDS} interleaved rounds\n`)
  console.log('| | CPU us per step |\n|---|---:|')
  for (const [name, figures] of us) console.log(`| ${name} | ${median(figures).toFixed(2)} |`)
}

/** What somebody would write by hand: the same environment, a random choice, and the steps in an array. */
async function plainLoop(): Promise<void> {
  for (let episode = 0; episode < EPISODES; episode++) {
    const steps: object[] = []
    const task = { id: `${episode}`, input: { steps: STEPS } }
    let { state, observation, candidates } = await counter.reset(task, undefined as never)
    for (let done = false; !done; ) {
      const action = candidates![Math.floor(Math.random() * candidates!.length)]!
      const result = counter.step(state, action, undefined as never)
      if (result instanceof Promise) throw new Error('it answers at once')
      steps.push({ observation, candidates, action, reward: result.reward })
      ;({ observation, done, candidates } = { candidates: undefined, ...result })
    }
  }
}
