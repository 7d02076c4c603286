import { defineAgent } from 'manyworlds'

/** The agents of the benchmarks. */
export const noop = defineAgent({ name: 'noop', run: (input: { id: number; text: string }) => input.id })
export const pause = defineAgent({
  name: 'pause',
  run: (ms: number) => new Promise<number>((resolve) => setTimeout(resolve, ms, ms)),
})
/** Five turns of looking and finding, a hundred or so characters each. */
export const fiveSteps = defineAgent({
  name: 'five-steps',
  run: (input: { id: number; question: string }, ctx) => {
    for (let turn = 0; turn < 5; turn++)
      ctx.step({
        action: { tool: 'search', query: `${input.question} (page ${turn} of task ${input.id})` },
        observation: `result ${turn}: something that was found on page ${turn} for task ${input.id}`,
        reward: turn / 4,
      })
    return { id: input.id, text: `the answer to ${input.question}` }
  },
})
/** Takes so long on a node of speed 1; a node's speed is what its environment says. */
export const paced = defineAgent({
  name: 'paced',
  run: (ms: number) => new Promise<number>((resolve) => setTimeout(resolve, ms / Number(process.env.BENCH_SPEED), ms)),
})
/** Answers with the time at which it was done. */
export const finishing = defineAgent({
  name: 'finishing',
  run: async (ms: number) => {
    await new Promise((resolve) => setTimeout(resolve, ms))
    return Date.now()
  },
})
