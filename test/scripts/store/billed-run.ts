import { appendFileSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { defineAgent, Runners } from 'manyworlds'

/** Tasks that ask for answers that count; the driver kills itself around the given one. */
const [store, ledger, killAt, killAfterMs] = process.argv.slice(2) as [string, string, string, string]

const customer = defineAgent({
  name: 'customer',
  run: async (n: number, ctx) => {
    const bills: unknown[] = []
    for (let i = 0; i < 4; i++) {
      bills.push(await ctx.ask('bill', { n, i }))
      // The same question again is another one.
      if (i === 2) bills.push(await ctx.ask('bill', { n, i }))
    }
    return bills
  },
})

let calls = 0
const services = {
  bill: {
    durable: true,
    answer: async ({ n, i }: { n: number; i: number }) => {
      appendFileSync(ledger, `t${n}/${i}\n`)
      if (++calls === Number(killAt)) setTimeout(() => process.kill(process.pid, 'SIGKILL'), Number(killAfterMs))
      await sleep(Math.random() * 5)
      return Math.random()
    },
  },
}
const tasks = Array.from({ length: 10 }, (_, n) => customer.task(n, { id: `t${n}` }))
const config = { store, runId: 'r', resume: 'auto', workerNum: 2, services } as const
for await (const { id, answer } of Runners.streamTask(tasks, config)) console.log(JSON.stringify({ id, answer }))
