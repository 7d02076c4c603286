import { appendFileSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { defineAgent, Runners } from 'manyworlds'

/** Runs a few quick tasks and a long one under one run id, or resumes them. */
const [store, ledger, ms, runId = 'r'] = process.argv.slice(2) as [string, string, string, string | undefined]

const nap = defineAgent({
  name: 'nap',
  run: async (n: number, ctx) => {
    appendFileSync(ledger, `${ctx.task.id}\n`)
    if (n === 3) await sleep(Number(ms), undefined, { signal: ctx.signal })
    return n
  },
})

const tasks = Array.from({ length: 4 }, (_, n) => nap.task(n, { id: `t${n}` }))
for await (const { id, restored } of Runners.streamTask(tasks, { store, runId, resume: 'auto', workerNum: 1 }))
  console.log(JSON.stringify({ id, restored }))
