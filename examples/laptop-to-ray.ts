/** The same tasks on this machine and on Ray: the cluster that RAY_ADDRESS names, or one that is started here for the run. */
import { defineAgent, Runners } from 'manyworlds'

const classify = defineAgent({
  name: 'classify',
  run: async (review: string, ctx) => {
    await new Promise((resolve) => setTimeout(resolve, 20 + 40 * ctx.random()))
    return /great|love|superb/i.test(review) ? 'praise' : /bad|broken|never/i.test(review) ? 'complaint' : 'other'
  },
})

const words = ['great', 'broken', 'as described', 'superb', 'never again', 'green']
const tasks = Array.from({ length: 60 }, (_, i) =>
  classify.task(`Review ${i}: ${words[i % words.length]}`, { id: `r${i}` }),
)

const here = await Runners.runTask(tasks, { workerNum: 2, store: false })
// What it takes to talk to Ray is set up the first time, which takes about a minute.
const inLocal = process.env.RAY_ADDRESS === undefined
const there = await Runners.runTask(tasks, { engineName: 'ray', inLocal, workerNum: 2, store: false })

const same = [...here].every(([id, { answer }]) => there.get(id)?.answer === answer)
const where = inLocal ? 'a Ray of this machine' : 'the Ray cluster'
console.log(`${there.size} tasks here and on ${where}; the answers are ${same ? 'identical' : 'NOT identical'}`)

await Runners.shutdown()
