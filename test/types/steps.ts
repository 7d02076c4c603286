// Compiled by `npm run check`, never run: what may be recorded, and what a step is known to have.
import { defineAgent, type ModelStep, type NoteStep, Runners, type Step, type StepEvent } from 'manyworlds'
import { same } from './equal.ts'

const agent = defineAgent({
  name: 'records',
  run: async (n: number, ctx) => {
    await ctx.step({
      action: 'look',
      observation: [1, 2],
      reward: 0.5,
      usage: { inputTokens: 1 },
      text: 't',
      data: { n },
    })
    ctx.step({})
    // @ts-expect-error what has no field of its own goes under `data`
    ctx.step({ action: 'look', thought: 'hm' })
    // @ts-expect-error a reward is a number
    ctx.step({ reward: 'much' })
    // @ts-expect-error no other kind of step is recorded this way
    ctx.step({ kind: 'model' })
    return n
  },
})

const response = await Runners.runTask(agent.task(1), {
  onStep: ({ taskId, attempt, step }) => {
    same<typeof taskId, string>(true)
    same<typeof attempt, number>(true)
    same<typeof step, Step>(true)
  },
})
for await (const step of response.steps()) {
  same<typeof step.kind, 'note' | 'model' | 'action' | 'tool'>(true)
  if (step.kind === 'model') same<typeof step.tokens, ModelStep['tokens']>(true)
  if (step.kind === 'note') same<typeof step.text, NoteStep['text']>(true)
  // @ts-expect-error only notes have a text
  step.text
}
same<StepEvent['step'], Step>(true)
