import { streamText, tool } from 'ai'
import * as z from 'zod'
import { llmAgent } from '../../dist/agents/index.js'
import { defineAgent } from '../../dist/index.js'

/** Asks a model one question. */
export const asker = defineAgent({
  name: 'asker',
  run: async (
    { model, prompt = 'hello', body }: { model: string; prompt?: string; body?: Record<string, unknown> },
    ctx,
  ) => {
    const { text, usage, finish } = await ctx.generate({ model, prompt, ...(body && { extraBody: body }) })
    return { text, usage, finish }
  },
})

/** The same through the AI SDK, as a stream. */
export const streamer = defineAgent({
  name: 'streamer',
  run: async ({ model }: { model: string }, ctx) => {
    const { textStream } = streamText({ model: ctx.model(model), prompt: 'hello', maxRetries: 0 })
    let text = ''
    for await (const part of textStream) text += part
    return text
  },
})

const add = tool({
  description: 'adds two numbers',
  inputSchema: z.object({ a: z.number(), b: z.number() }),
  execute: ({ a, b }) => a + b,
})

export const adder = llmAgent({ name: 'adder', model: 'm', instructions: 'Add.', tools: { add } })

export const deaf = llmAgent({
  name: 'deaf',
  model: 'm',
  toolTimeoutMs: 200,
  tools: {
    wait: tool({
      inputSchema: z.object({}),
      execute: async () => {
        await new Promise((resolve) => setTimeout(resolve, 1500))
        return 'too late'
      },
    }),
  },
})

export const city = llmAgent({
  name: 'city',
  model: 'm',
  output: z.object({ name: z.string(), people: z.number() }),
  prompt: (country: string) => `The capital of ${country}?`,
})
