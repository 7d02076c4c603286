import { tool } from 'ai'
import * as z from 'zod'
import { llmAgent } from '../../dist/agents/index.js'
import { defineAgent } from '../../dist/index.js'
import { lora } from '../../dist/train/index.js'

const add = tool({
  description: 'adds two numbers',
  inputSchema: z.object({ a: z.number(), b: z.number() }),
  execute: ({ a, b }) => a + b,
})

/** Graded by what the task expects: the reward is null where that is not a number. */
export default llmAgent({
  ...{ name: 'solver', model: 'policy', instructions: 'Add.', tools: { add }, temperature: 0.3 },
  grade: ({ groundTruth }) => ({
    reward: typeof groundTruth === 'number' ? groundTruth : null,
    success: groundTruth === 1,
    parts: { right: { value: Number(groundTruth), weight: 1 } },
  }),
})

/** Fails as its input says, after it has asked its model; it does not say which model it calls. */
export const moody = defineAgent({
  name: 'moody',
  run: async (input: string, ctx) => {
    const { text } = await ctx.generate({ model: 'policy', prompt: input, temperature: 1 })
    if (input === 'fail' && ctx.task.rollout?.number === 2) throw new Error('not in the mood')
    return text
  },
  grade: () => ({ reward: 1 }),
})

/** What it would train by itself; under a rollout server, the model is the caller's. */
export const adapted = llmAgent({ name: 'adapted', policy: lora({ base: './nowhere' }), grade: () => ({ reward: 1 }) })

export const config = { workerNum: 1, models: { policy: { baseURL: 'http://127.0.0.1:1/v1', model: 'never-called' } } }
