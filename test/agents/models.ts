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

/** A conversation of its own making, one question after the other. */
export const turns = defineAgent({
  name: 'turns',
  run: async ({ name, turns }: { name: string; turns: number }, ctx) => {
    const said: string[] = []
    for (let turn = 0; turn < turns; turn++)
      said.push((await ctx.generate({ model: 'm', prompt: `${name}, turn ${turn}` })).text)
    return said
  },
})

/** Takes its worker down after a while. */
export const killer = defineAgent({
  name: 'killer',
  run: async (ms: number) => {
    await new Promise((resolve) => setTimeout(resolve, ms))
    process.kill(process.pid, 'SIGKILL')
  },
})

/** Puts a secret wherever it can. */
export const leaky = defineAgent({
  name: 'leaky',
  run: async ({ where, secret }: { where: string; secret: string }, ctx) => {
    const { text } = await ctx.generate({ model: 'm', prompt: where === 'message' ? `my key is ${secret}` : where })
    switch (where) {
      case 'tool':
        void ctx.step({ action: 'tool', observation: { headers: { authorization: `Bearer ${secret}` } } })
        return 'done'
      case 'error':
        throw new Error(`401: the key ${secret} is not valid`)
      case 'print':
        console.log('using', secret)
        console.error({ secret })
        return 'done'
      case 'environment':
        return process.env.MW_TEST_KEY ?? 'no variable'
      default:
        return text.length
    }
  },
})
