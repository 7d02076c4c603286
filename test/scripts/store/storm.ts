import { appendFileSync, existsSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { defineAgent, Runners } from 'manyworlds'

/** The last tasks end only when the test has made a file: the storm is not over before that, however fast the machine is. */
const WAITING = 4
const [store, ledger, session, count] = process.argv.slice(2) as [string, string, string, string]

const work = defineAgent({
  name: 'work',
  run: async (n: number, ctx) => {
    appendFileSync(ledger, `${session} ${ctx.task.id}\n`)
    ctx.step({ action: 'begin', observation: n })
    await sleep(5 + Math.floor(ctx.random() * 30))
    if (n >= Number(count) - WAITING) while (!existsSync(`${ledger}-end`)) await sleep(20)
    ctx.step({ action: 'end', reward: n % 2 })
    return n * n
  },
})

const tasks = Array.from({ length: Number(count) }, (_, n) => work.task(n, { id: `t${n}` }))
const responses = await Runners.runTask(tasks, {
  store,
  runId: 'storm',
  resume: 'auto',
  workerNum: 2,
  concurrency: 8,
  // Those that wait may be in a worker that is killed each time.
  maxAttempts: 100,
  backoffMs: 1,
})
const wrong = [...responses.values()].filter(({ id, answer }) => answer !== Number(id.slice(1)) ** 2)
console.log(JSON.stringify({ answered: responses.size, wrong: wrong.map(({ id, status }) => `${id} ${status}`) }))
