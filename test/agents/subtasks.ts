import { defineAgent } from '../../dist/index.js'

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
