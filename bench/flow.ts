import { availableParallelism } from 'node:os'
import { Runners } from 'manyworlds'
import { noop, pause } from './agents.ts'
import { numberOf } from './figures.ts'
import { describeMachine } from './machine.ts'

/**
 * How well work flows: 5,000 tasks of 300 ms with 1,024 in flight against the ideal, and a million tasks from an async
 * generator with the driver's memory beside it.
 *
 *   node bench/flow.ts [--tasks N] [--rounds N]
 */
const MILLION = numberOf('--tasks', 1_000_000)
const ROUNDS = numberOf('--rounds', 5)

await inFlight()
await million()
console.log(`\n${describeMachine()}`)

async function inFlight(): Promise<void> {
  const TASKS = 5000
  const MS = 300
  const workerNum = Math.min(2, availableParallelism())
  const concurrency = 1024 / workerNum
  const ideal = (Math.ceil(TASKS / 1024) * MS) / 1000
  const tasks = () => Array.from({ length: TASKS }, () => pause.task(MS))
  const seconds: number[] = []
  for (let round = 0; round <= ROUNDS; round++) {
    const began = performance.now()
    const responses = await Runners.runTask(tasks(), { workerNum, concurrency, store: false })
    if ([...responses.values()].some(({ success }) => !success)) throw new Error('a task failed')
    // The first round starts and warms the workers.
    if (round > 0) seconds.push((performance.now() - began) / 1000)
  }
  const median = seconds.sort((a, b) => a - b)[seconds.length >> 1]!
  console.log(
    `warm, ${TASKS} tasks of ${MS} ms, 1,024 in flight: median ${median.toFixed(3)} s of ${ROUNDS} rounds, ideal ${ideal.toFixed(1)} s, ratio ${(median / ideal).toFixed(3)}`,
  )
}

async function million(): Promise<void> {
  async function* source() {
    for (let id = 0; id < MILLION; id++) yield noop.task({ id, text: 'x'.repeat(180) }, { id: `task-${id}` })
  }
  console.log(
    `\n${MILLION.toLocaleString('en')} no-op tasks from an async generator through streamTask, each with an id:`,
  )
  console.log('| answered | driver RSS MB | heap used MB |\n|---|---|---|')
  const began = performance.now()
  let answered = 0
  for await (const { success } of Runners.streamTask(source(), { workerNum: 2, concurrency: 64, store: false })) {
    if (!success) throw new Error('a task failed')
    if (++answered % Math.ceil(MILLION / 10) === 0 || answered === 10_000) {
      const { rss, heapUsed } = process.memoryUsage()
      console.log(
        `| ${answered.toLocaleString('en')} | ${(rss / 2 ** 20).toFixed(0)} | ${(heapUsed / 2 ** 20).toFixed(0)} |`,
      )
    }
  }
  const elapsed = (performance.now() - began) / 1000
  console.log(
    `${answered.toLocaleString('en')} answered in ${elapsed.toFixed(1)} s, ${Math.round(answered / elapsed).toLocaleString('en')} a second`,
  )
}
