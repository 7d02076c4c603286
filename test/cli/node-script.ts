/** A script that knows nothing of nodes, with tasks of `ms` milliseconds. It prints the process that each ran in. */
export const plainScript = (count: number, ms: number) => `
import { defineAgent, Runners } from 'manyworlds'
const work = defineAgent({
  name: 'work',
  run: async (n: number) => {
    await new Promise((done) => setTimeout(done, ${ms}))
    return process.ppid
  },
})
const responses = await Runners.runTask(
  Array.from({ length: ${count} }, (_, n) => work.task(n, { id: 't' + n })),
  { concurrency: 2 },
)
console.log('parents', [...new Set([...responses.values()].map(({ answer }) => answer))].join(','))
`

/** The same, with tasks that end once there is such a file; those before number `from` end at once. */
export const gatedScript = (count: number, gate: string, from = 0) => `
import { existsSync } from 'node:fs'
import { defineAgent, Runners } from 'manyworlds'
const work = defineAgent({
  name: 'work',
  run: async (n: number) => {
    while (n >= ${from} && !existsSync(${JSON.stringify(gate)})) await new Promise((done) => setTimeout(done, 20))
  },
})
await Runners.runTask(Array.from({ length: ${count} }, (_, n) => work.task(n, { id: 't' + n })), { concurrency: 2 })
`
