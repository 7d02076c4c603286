import { tool } from 'ai'
import { llmAgent, numeric } from 'manyworlds/agents'
import * as z from 'zod'

const numbers = z.object({ a: z.number(), b: z.number() })

/** Counts what a shop has left, with a calculator. */
export const clerk = llmAgent({
  name: 'clerk',
  model: 'counting',
  instructions:
    'You are the clerk of a shop. Count carefully, use the tools for arithmetic, and end with a line "Answer: NUMBER".',
  tools: {
    multiply: tool({ description: 'Multiplies two numbers.', inputSchema: numbers, execute: ({ a, b }) => a * b }),
    subtract: tool({
      description: 'Subtracts b from a.',
      inputSchema: numbers,
      execute: ({ a, b }) => {
        if (b > a) throw new RangeError(`the shop cannot sell ${b} of ${a} pens`)
        return a - b
      },
    }),
  },
  maxTurns: 6,
  grade: numeric({ last: true }),
})

/** Questions in a fixed order. */
export const tasks = (count: number) =>
  Array.from({ length: count }, (_, n) => {
    const [boxes, pens] = [3 + ((n * 7) % 19), 4 + ((n * 5) % 13)]
    // A few customers ask for more than there is, which is an error of the tool.
    const sold = 5 + ((n * 11) % (n % 29 === 17 ? 90 : boxes * pens - 5))
    return clerk.task(`A shop has ${boxes} boxes of ${pens} pens. It sells ${sold} pens. How many pens are left?`, {
      id: `shop-${String(n + 1).padStart(3, '0')}`,
      groundTruth: Math.max(0, boxes * pens - sold),
    })
  })
