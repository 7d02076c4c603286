import { defineAgent, Runners } from '../../dist/index.js'

export const doubles = defineAgent({ name: 'doubles', run: (n: number) => 2 * n })

/** Defined nowhere. */
const ref = { name: 'lost', module: new URL('./not-there.ts', import.meta.url).href, fingerprint: undefined }
const lost = { input: 1, agent: { ...doubles, name: 'lost', ref } }

/** Answers what it was told when it asked for a sub-task whose module does not exist. */
export const asksForLost = defineAgent({
  name: 'asks-for-lost',
  run: async (n: number, ctx) =>
    ctx.runTask([doubles.task(n), lost, lost]).then(
      () => 'nothing',
      (error: Error & { code: string }) => [error.code, error.message],
    ),
})

/** Answers without waiting for its sub-task. */
export const forgets = defineAgent({
  name: 'forgets',
  run: (n: number, ctx) => {
    ctx.runTask(doubles.task(n)).catch(() => {})
    return n
  },
})

/** Asks for sub-tasks one after the other, and adds up what they come to. */
export const inTurn = defineAgent({
  name: 'inTurn',
  run: async (count: number, ctx) => {
    let sum = 0
    for (let i = 1; i <= count; i++) sum += Number((await ctx.runTask(counts.task(i))).answer)
    return sum
  },
})

const counts = defineAgent({ name: 'counts', run: async (n: number) => n })

/** Answers where it finds its sub-tasks: by the ids that it gave, by whole ids, and among the keys. */
export const finds = defineAgent({
  name: 'finds',
  run: async (by: 'context' | 'Runners', ctx) => {
    const tasks = [doubles.task(1, { id: 'one' }), doubles.task(2, { id: 'two' }), doubles.task(3)]
    const responses = await (by === 'context' ? ctx.runTask(tasks) : Runners.runTask(tasks))
    const { id } = ctx.task
    return {
      given: [responses.get('one')?.answer, responses.get('two')?.answer],
      whole: [
        responses.get(`${id}/one`)?.answer,
        responses.get(`${id}/two`)?.answer,
        responses.get(`${id}/1.3`)?.answer,
      ],
      has: [responses.has('one'), responses.has(`${id}/two`), responses.has('three')],
      keys: [...responses.keys()],
    }
  },
})

/** Has a sub-task whose id looks like the whole id of another. */
export const confuses = defineAgent({
  name: 'confuses',
  run: async (_input: undefined, ctx) => {
    const { id } = ctx.task
    const responses = await ctx.runTask([doubles.task(1, { id: 'a' }), doubles.task(2, { id: `${id}/a` })])
    return [responses.get('a')?.answer, responses.get(`${id}/a`)?.answer]
  },
})
