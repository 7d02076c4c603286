import { existsSync, openSync, writeSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { defineAgent, Runners } from 'manyworlds'

/**
 * Tasks that record many steps; whatever an observer is told of is written to the ledger at once. The last two end only when the
 * test has made a file: the storm is not over before that, however fast the machine is.
 */
const [store, ledger, session] = process.argv.slice(2) as [string, string, string]
const TASKS = 200
const STEPS = 50

const talk = defineAgent({
  name: 'talk',
  run: async (n: number, ctx) => {
    const messages: string[] = []
    for (let i = 0; i < STEPS; i++) {
      messages.push(`turn ${i} of ${n}, which says something that is long enough to be worth a link`)
      await ctx.step({ data: { messages: [...messages] }, reward: i })
      await sleep(ctx.random() * 20)
    }
    if (n >= TASKS - 2) while (!existsSync(`${ledger}-end`)) await sleep(20)
    return n
  },
})

const file = openSync(ledger, 'a')
const tasks = Array.from({ length: TASKS }, (_, n) => talk.task(n, { id: `t${n}` }))
const responses = await Runners.runTask(tasks, {
  store,
  runId: 'storm',
  resume: 'auto',
  workerNum: 2,
  concurrency: 20,
  onStep: ({ taskId, attempt, step }) => writeSync(file, `${session} ${taskId} ${attempt} ${step.index}\n`),
})
let wrong = 0
for (const response of responses.values()) {
  const { trajectory } = response
  const last = trajectory.at(-1)
  if (trajectory.length !== STEPS || last?.kind !== 'note') wrong++
  else if ((last.data as { messages: string[] }).messages.length !== STEPS) wrong++
}
console.log(JSON.stringify({ answered: responses.size, wrong }))
