import { createOpenAICompatible } from '@ai-sdk/openai-compatible'
import { ToolLoopAgent, tool } from 'ai'
import { defineAgent } from 'manyworlds'
import { llmAgent } from 'manyworlds/agents'
import * as z from 'zod'

const add = tool({
  description: 'adds two numbers',
  inputSchema: z.object({ a: z.number(), b: z.number() }),
  execute: ({ a, b }) => a + b,
})
const instructions = 'Add numbers with the tool, then say how often you did.'

/** What people write without this package: the SDK's agent with its own provider, and nothing recorded. */
export const byHand = defineAgent({
  name: 'by-hand',
  params: { baseURL: '', model: '' },
  setup: ({ baseURL, model }) => createOpenAICompatible({ name: 'server', baseURL })(model),
  run: async (prompt: string, { state: model, signal }) => {
    const agent = new ToolLoopAgent({ model, instructions, tools: { add }, maxRetries: 0 })
    const { text } = await agent.generate({ prompt, abortSignal: signal })
    return text
  },
})

export const solver = llmAgent({ name: 'solver', model: 'm', instructions, tools: { add }, maxTurns: 50 })

/** Makes so many calls, one after the other. */
export const caller = defineAgent({
  name: 'caller',
  run: async (calls: number, ctx) => {
    for (let call = 0; call < calls; call++) await ctx.generate({ model: 'm', prompt: `question ${call}` })
  },
})
