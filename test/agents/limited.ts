import { defineAgent, ParallelizableAgent } from 'manyworlds'
import { defineEnvironment, fixedPolicy, stepAgent } from 'manyworlds/agents'

const now = () => performance.timeOrigin + performance.now()

/** Waits for its turn so many times, and says when each came. */
export const limited = defineAgent({
  name: 'limited',
  run: async ({ turns = 1, name = 'api' }: { turns?: number; name?: string }, { limit }) => {
    const at: number[] = []
    for (let i = 0; i < turns; i++) {
      await limit(name)
      at.push(now())
    }
    return at
  },
})

/** Says why it did not get its turn. */
export const refused = defineAgent({
  name: 'refused',
  run: async ({ name, options }: { name: unknown; options?: object }, ctx) => {
    try {
      await ctx.limit(name as string, options)
      return 'allowed'
    } catch (error) {
      const { code, message } = error as { code?: string; message: string }
      return { code, message }
    }
  },
})

/** Asks for all its turns together. */
export const greedy = defineAgent({
  name: 'greedy',
  run: async ({ turns }: { turns: number }, ctx) => {
    await Promise.all(Array.from({ length: turns }, () => ctx.limit('api')))
    return now()
  },
})

export const pairOfLimited = new ParallelizableAgent({
  name: 'pair-of-limited',
  agents: [limited, refused],
})

const gate = defineEnvironment({
  name: 'gate',
  reset: async (_: { input: null }, ctx) => {
    await ctx.limit('api')
    return { state: {}, observation: 0, candidates: ['go'] }
  },
  step: async (_state, _action, ctx) => {
    await ctx.limit('api')
    return { observation: now(), reward: 1, done: true, success: true }
  },
})

export const passesGate = stepAgent({
  name: 'passes-gate',
  environment: gate,
  policy: fixedPolicy(() => 'go'),
  maxSteps: 3,
})
