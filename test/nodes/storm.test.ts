import { expect, it } from 'vitest'
import { runStorm } from './storm-run.ts'

/** Give this in the environment to have the same storm again. */
const SEED = Number(process.env.NODES_STORM_SEED ?? Math.floor(Math.random() * 1e9))
const TASKS = 1500
const MEMORY_MB = 600

it(`a storm over nodes, links, workers and the driver loses nothing, and answers all once (NODES_STORM_SEED=${SEED})`, {
  timeout: 400_000,
}, async () => {
  console.log(`storm of nodes: NODES_STORM_SEED=${SEED}`)
  const lines: string[] = []
  const log = (line: string) => void lines.push(line)
  const found = await runStorm({ seed: SEED, tasks: TASKS, ms: 35_000, everyMs: 500, calmMs: 180_000, log })
  console.log(`storm of nodes: ${found.sessions} sessions, ${JSON.stringify(found.happened)}`)
  expect(found.problems, lines.join('\n')).toEqual([])
  expect(found.report).toMatchObject({ answered: TASKS, wrong: [] })
  expect(found.report!.maxRssMb).toBeLessThan(MEMORY_MB)
})
