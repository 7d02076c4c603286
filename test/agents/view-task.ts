import { existsSync } from 'node:fs'
import { tool } from 'ai'
import * as z from 'zod'
import { llmAgent, stepAgent } from '../../dist/agents/index.js'
import { defineAgent, defineGrader, ParallelizableAgent } from '../../dist/index.js'
import { softmaxPolicy } from '../../dist/train/index.js'
import { desk } from '../../examples/tool-desk/desk.ts'
import { deskFeatures } from '../../examples/tool-desk/features.ts'

/** Agents whose trajectories have everything that the page of a task shows. */
const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms))

const tools = {
  search: tool({
    description: 'Searches the library and returns the titles that match.',
    inputSchema: z.object({ query: z.string(), limit: z.number() }),
    execute: async ({ query, limit }) => {
      await pause(40)
      return { query, limit, hits: ['The long read', 'For beginners', 'A short history'], more: false }
    },
  }),
  add: tool({
    description: 'Adds two numbers.',
    inputSchema: z.object({ a: z.number(), b: z.number() }),
    execute: ({ a, b }) => {
      if (a < 0) throw new RangeError('a must not be negative')
      return a + b
    },
  }),
}

export const MARKDOWN = `## What I found

The answer is **42**, see [the source](https://example.com/a?b=1), and \`code\`.

1. First, a list
2. with a [x] check and ~~struck~~ text
   - nested, *emphasized*

| city | people |
|------|-------:|
| Oslo |    0.7 |
| Rome |    2.8 |

\`\`\`ts
export const add = (a: number, b: number) => a + b
\`\`\`

> A quote.
`

export const solver = llmAgent({
  name: 'solver',
  model: 'm',
  instructions: `You are a careful assistant. ${'Think before you answer. '.repeat(20)}`,
  tools,
})
export const talker = llmAgent({ name: 'talker', model: 'm', instructions: 'Answer in Markdown.' })
export const critic = llmAgent({ name: 'critic', model: 'm', instructions: 'Find what is wrong.' })
export const panel = new ParallelizableAgent({ name: 'panel', agents: [talker, critic] })
export const clerk = stepAgent({ name: 'clerk', environment: desk, policy: softmaxPolicy({ features: deskFeatures }) })

export const judged = defineGrader({
  name: 'judged',
  grade: ({ answer, groundTruth }) => ({
    reward: String(answer).includes(String(groundTruth)) ? 1 : 0.25,
    success: String(answer).includes(String(groundTruth)),
    parts: { correct: { value: 0.5, weight: 2 }, brief: { value: 1, weight: 1 } },
    feedback: 'The number is there, but **not** the reason.',
  }),
})

/** Draws another answer in each rollout. */
export const guesser = defineAgent({
  name: 'guesser',
  run: async (question: string, ctx) => {
    const guess = Math.floor(ctx.random() * 3)
    ctx.step({ text: `Reads: ${question}`, data: { question, tries: 1 } })
    await pause(20)
    ctx.step({ action: { guess }, observation: 'noted', reward: guess / 2 })
    console.log(`guessed ${guess}`)
    return `It is ${guess}.`
  },
})

/** Fails on its first attempt only. */
export const flaky = defineAgent({
  name: 'flaky',
  run: async (_input: string, ctx) => {
    ctx.step({ text: `attempt ${ctx.attempt}` })
    console.log(`\u001b[31mattempt ${ctx.attempt}\u001b[0m`)
    if (ctx.attempt === 1) throw new Error('not yet', { cause: new TypeError('the disk is full') })
    return 'at last'
  },
})

export const failing = defineAgent({
  name: 'failing',
  run: async (input: string, ctx) => {
    ctx.step({ text: `about to fail with ${input}` })
    if (input === 'crash') process.kill(process.pid, 'SIGKILL')
    if (input === 'hang') await new Promise((resolve) => setTimeout(resolve, 60_000).unref())
    throw new RangeError(`cannot do ${input}`, { cause: new Error('the reason behind it') })
  },
})

export const parent = defineAgent({
  name: 'parent',
  run: async (chapters: number, ctx) => {
    ctx.step({ text: 'asks for chapters' })
    const parts = Array.from({ length: chapters }, (_, i) => guesser.task(`chapter ${i + 1}`))
    return [...(await ctx.runTask(parts)).values()].map((one) => one.answer)
  },
})

export const HOSTILE = [
  '<script>window.hacked = 1</script><img src=x onerror="window.hacked = 2">',
  '[click](javascript:window.hacked=3) ![pixel](https://example.com/track.png?x=1)',
  '<a href="javascript:window.hacked=4">link</a>',
  'abc\u202Etxt.exe \u001b[31mred\u001b[0m',
].join('\n\n')

/** Too long to be sent at once: the last words come when somebody asks for all of it. */
export const LONG_HOSTILE = `${HOSTILE}\n${'<b>more</b>\n'.repeat(10_000)}${HOSTILE} the last words`

/** Says hostile things everywhere. */
export const hostile = defineAgent({
  name: 'hostile',
  run: async (_input: string, ctx) => {
    ctx.step({ text: HOSTILE, data: { '<b>key</b>': HOSTILE, __proto__: 1 } })
    ctx.step({ text: '[*_~'.repeat(20_000) })
    ctx.step({ text: '> '.repeat(5000) })
    ctx.step({ text: `|a|b|\n|-|-|\n${'|1|2|\n'.repeat(5000)}` })
    ctx.step({ text: 'x'.repeat(2_000_000), data: { long: 'y'.repeat(500_000) } })
    console.log(HOSTILE)
    console.log('z'.repeat(100_000))
    return { said: LONG_HOSTILE }
  },
})

/** Records many steps. */
export const talkative = defineAgent({
  name: 'talkative',
  run: async (steps: number, ctx) => {
    for (let i = 0; i < steps; i++) {
      ctx.step({ text: `step ${i}: **thinking** about \`${i * i}\``, data: { i, square: i * i } })
      if (i % 100 === 0) console.log(`at ${i}`)
      if (i % 200 === 0) await pause(1)
    }
    return steps
  },
})

/** Records a step every `ms`, so that somebody can watch, until a file exists. */
export const slow = defineAgent({
  name: 'slow',
  run: async ({ ms, until }: { ms: number; until: string }, ctx) => {
    for (let i = 0; !existsSync(until); i++) {
      ctx.step({ text: `slow step ${i}` })
      await pause(ms)
    }
    return 'done slowly'
  },
})
