import { expect, it } from 'vitest'
import { SEED, share } from '../support/storm.ts'
import { runStorm } from './storm-run.ts'

const TASKS = share(300, 1500)
const MEMORY_MB = 600

it(`a storm over nodes, links, workers and the driver loses nothing, and answers all once (seed ${SEED})`, {
  timeout: 400_000,
}, async () => {
  const lines: string[] = []
  const log = (line: string) => void lines.push(line)
  const found = await runStorm({
    seed: SEED,
    tasks: TASKS,
    ms: share(6000, 35_000),
    everyMs: 500,
    calmMs: 180_000,
    log,
  })
  console.log(`storm of nodes: ${found.sessions} sessions, ${JSON.stringify(found.happened)}`)
  expect(found.problems, lines.join('\n')).toEqual([])
  expect(found.report).toMatchObject({ answered: TASKS, wrong: [] })
  expect(found.report!.maxRssMb).toBeLessThan(MEMORY_MB)
})
