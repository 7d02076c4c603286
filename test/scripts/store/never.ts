import { appendFileSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { defineAgent, Runners, type TaskLike } from 'manyworlds'

/** Tasks that must not be started twice, one a sub-task. The first session is killed while they run. */
const [store, ledger, what] = process.argv.slice(2) as [string, string, 'task' | 'sub-task']

const pay = defineAgent({
  name: 'pay',
  run: async (ms: number, ctx) => {
    appendFileSync(ledger, `${ctx.task.id}\n`)
    await sleep(ms)
  },
})
const family = defineAgent({
  name: 'family',
  run: async (_input: null, ctx) => {
    appendFileSync(ledger, `${ctx.task.id}\n`)
    const [child] = (await ctx.runTask([pay.task(60_000, { rerun: 'never' })])).values()
    return child!.status
  },
})

const alone = [
  pay.task(60_000, { id: 'pay', rerun: 'never' }),
  // There is no slot left for it: it waits, and was certainly not started.
  pay.task(1, { id: 'later', rerun: 'never' }),
]
const tasks: readonly TaskLike[] = what === 'sub-task' ? [family.task(null, { id: 'family' })] : alone
const responses = await Runners.runTask(tasks, { store, runId: 'r', resume: 'auto', workerNum: 1, concurrency: 1 })
for (const { id, status, answer, error } of responses.values())
  console.log(JSON.stringify([id, status, error?.message ?? answer ?? null]))
