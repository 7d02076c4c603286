import { tool } from 'ai'
import * as z from 'zod'
import { llmAgent } from '../../dist/agents/index.js'

const add = tool({
  description: 'adds two numbers',
  inputSchema: z.object({ a: z.number(), b: z.number() }),
  execute: ({ a, b }) => `${a + b} in all`,
})

interface Question {
  readonly question: string
  /** This rollout fails before it has asked anything. */
  readonly failing?: number
}

const sumOf = (text: string) => [...text].reduce((sum, letter) => sum + letter.codePointAt(0)!, 0)

/** For a model of random weights: the reward depends on what it says, and that is all. */
export default llmAgent({
  ...{ name: 'babbler', model: 'policy', instructions: 'Add.', maxTurns: 3 },
  prompt: ({ question }: Question) => question,
  tools: ({ failing }: Question, ctx) => {
    if (failing !== undefined && ctx.task.rollout?.number === failing) throw new Error('no tools today')
    return { add }
  },
  grade: ({ answer, groundTruth }) => ({ reward: (sumOf(String(answer)) % 7) + Number(groundTruth) }),
})
