import { tool } from 'ai'
import * as z from 'zod'
import { defineEnvironment, llmAgent, stepAgent } from '../../dist/agents/index.js'
import { defineAgent, defineGrader } from '../../dist/index.js'

const add = tool({
  description: 'adds two numbers',
  inputSchema: z.object({ a: z.number(), b: z.number() }),
  execute: ({ a, b }) => a + b,
})

/** Sampled at a known temperature: its tokens can be trained. */
export const sampled = llmAgent({
  ...{ name: 'sampled', model: 'm', instructions: 'Add “carefully”.', tools: { add }, temperature: 0.7 },
})

/** Asks a sub-task and then a question of its own; records a note; a second conversation. */
export const boss = defineAgent({
  name: 'boss',
  run: async (question: string, ctx) => {
    const { text } = await ctx.generate({ model: 'm', prompt: question, temperature: 0.5 })
    await ctx.step({ text: 'thinking', action: { go: 1 }, observation: { seen: [1, 2] }, reward: 0.25 })
    await ctx.runTask(sampled.task('part', { id: 'part' }))
    const second = await ctx.generate({ model: 'm', prompt: `again: ${question}`, temperature: 0.5 })
    return `${text} ${second.text}`
  },
})

const door = defineEnvironment({
  name: 'door',
  reset: () => ({ state: { tries: 0 }, observation: { door: 'shut' }, candidates: ['push', 'pull'] }),
  step: (state: { tries: number }, action) => {
    state.tries++
    const done = action === 'pull'
    return { observation: { door: done ? 'open' : 'shut' }, reward: done ? 1 : 0, done, candidates: ['push', 'pull'] }
  },
})

/** Acts in a world, without a model. */
export const porter = stepAgent({
  name: 'porter',
  environment: door,
  act: ({ observation }) => (observation.door === 'shut' ? 'push' : 'pull'),
  maxSteps: 2,
})

/** Rollouts of a task get 0 and 1 in turn. */
export const alternating = defineGrader({
  name: 'alternating',
  grade: ({ task }) => ({ reward: task.id.endsWith('@2') ? 1 : 0 }),
})

/** By the last digit of the task's id. */
export const byId = defineGrader({
  name: 'by-id',
  grade: ({ task }) => ({ reward: Number(task.id.at(-1)), success: Number(task.id.at(-1)) >= 2 }),
})

/** Asks a model, and then fails if it is the fourth rollout, or is told to. */
export const hesitant = defineAgent({
  name: 'hesitant',
  run: async (question: string, ctx) => {
    const { text } = await ctx.generate({ model: 'm', prompt: `${question} of ${ctx.task.id}`, temperature: 0.5 })
    if (ctx.task.rollout?.number === 4 || question === 'always') throw new Error('I would rather not')
    return text
  },
})

/** By the number of the rollout; of the second, nobody can tell. */
export const lastDigit = defineGrader({
  name: 'last-digit',
  grade: ({ task }) => ({ reward: task.id.endsWith('@2') ? null : Number(task.id.split('@')[1] ?? 1) }),
})
