import { tool } from 'ai'
import { llmAgent } from 'manyworlds/agents'
import { lora } from 'manyworlds/train'
import * as z from 'zod'

/** A random model of some thousand weights, with a tokenizer of bytes whose folder a test has made. */
const { TINY_TOKENIZER: tokenizer = '/nowhere', TINY_CONFIG: config = '{}' } = process.env

const policy = lora({
  ...{ name: 'tiny', base: { config: JSON.parse(config) as Record<string, unknown>, tokenizer } },
  ...{ rank: 8, alpha: 16, seed: 7 },
})

/** How much of what it says are letters: at first about a fifth. */
const letters = (text: unknown) => String(text).replace(/[^a-z]/g, '').length / LENGTH
const LENGTH = 6

export const babbler = llmAgent({
  name: 'babbler',
  policy,
  maxOutputTokens: LENGTH,
  maxTurns: 2,
  // It will hardly ever call it: what matters is that tools are part of the prompt.
  tools: {
    look: tool({ description: 'looks', inputSchema: z.object({}), execute: async () => 'nothing' }),
  },
  grade: ({ answer }) => ({ reward: letters(answer), success: letters(answer) > 0.5 }),
})

export const babblerTasks = (count: number) =>
  Array.from({ length: count }, (_, n) => ({ id: `t${n}`, input: `Say ${'xyz'[n % 3]}${n}` }))
