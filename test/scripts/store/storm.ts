import { appendFileSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { defineAgent, Runners } from 'manyworlds'

const [store, ledger, session, count] = process.argv.slice(2) as [string, string, string, string]

const work = defineAgent({
  name: 'work',
  run: async (n: number, ctx) => {
    appendFileSync(ledger, `${session} ${ctx.task.id}\n`)
    ctx.step({ action: 'begin', observation: n })
    await sleep(5 + Math.floor(ctx.random() * 30))
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
  maxAttempts: 20,
  backoffMs: 1,
})
const wrong = [...responses.values()].filter(({ id, answer }) => answer !== Number(id.slice(1)) ** 2)
console.log(JSON.stringify({ answered: responses.size, wrong: wrong.map(({ id, status }) => `${id} ${status}`) }))
