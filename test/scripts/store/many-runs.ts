import { defineAgent, Runners } from 'manyworlds'

/** Many small runs in one store, a few at a time. */
const [store, name, count] = process.argv.slice(2) as [string, string, string]

const twice = defineAgent({ name: 'twice', run: async (n: number) => 2 * n })

const one = async (n: number) => {
  const { answer } = await Runners.runTask(twice.task(n), { store, runId: `${name}-${n}`, workerNum: 1 })
  if (answer !== 2 * n) throw new Error(`${answer} for ${n}`)
}
for (let n = 0; n < Number(count); n += 4) await Promise.all([n, n + 1, n + 2, n + 3].map(one))
await Runners.shutdown()
