// Questions from a CSV file, answered by a model with a calculator, and graded.
// docs/tutorial-models.md explains it line by line. It needs a model:
//
//   npx manyworlds run examples/compare-models.ts --model solver=http://127.0.0.1:8000/v1#qwen3-4b
import { tool } from 'ai'
import { Runners } from 'manyworlds'
import { llmAgent, numeric } from 'manyworlds/agents'
import { type CsvRow, fromCsv } from 'manyworlds/data'
import * as z from 'zod'

const solver = llmAgent({
  name: 'solver',
  model: 'solver',
  instructions: 'Solve the problem. Use the tools for arithmetic. Answer with the number alone.',
  tools: {
    multiply: tool({
      description: 'multiplies two numbers',
      inputSchema: z.object({ a: z.number(), b: z.number() }),
      execute: ({ a, b }) => a * b,
    }),
    add: tool({
      description: 'adds two numbers, of which one may be negative',
      inputSchema: z.object({ a: z.number(), b: z.number() }),
      execute: ({ a, b }) => a + b,
    }),
  },
  maxTurns: 8,
  grade: numeric(),
})

type Row = CsvRow<'id' | 'question' | 'answer'>

const file = new URL('compare-models/questions.csv', import.meta.url)
const tasks = fromCsv(file, ({ id, question, answer }: Row) =>
  solver.task(question, { id, groundTruth: Number(answer) }),
)

let right = 0
let all = 0
for await (const { grade } of Runners.streamTask(tasks, { rollouts: 2 })) {
  all++
  if (grade?.success) right++
}
console.log(`${right} of ${all} answers are right`)
