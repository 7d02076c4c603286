import { setTimeout as sleep } from 'node:timers/promises'
import { defineEnvironment, stepAgent, toPrompt } from 'manyworlds/agents'

/** Tools that work, and tools that do not. Each task brings the actions that its agent takes. */
const bench = defineEnvironment({
  name: 'bench',
  reset: (task: { input: { instruction: string; actions: readonly unknown[] } }) => ({
    state: { calls: 0 },
    observation: toPrompt(task),
  }),
  tools: {
    add: ({ a, b }: { a: number | string; b: number | string }, ctx) => {
      ctx.state.calls++
      return Number(a) + Number(b)
    },
    later: { description: 'takes its time', run: async ({ text }: { text: string }) => sleep(5, `later: ${text}`) },
    nothing: () => {},
    greedy: (args: Record<string, unknown>) => {
      const taken = { ...args }
      for (const key of Object.keys(args)) delete args[key]
      return taken
    },
    broken: () => {
      throw new RangeError('the tool is broken')
    },
    'broken-later': async () => {
      await sleep(1)
      throw 'not even an error'
    },
    hang: () => new Promise<never>(() => {}),
    live: () => () => {},
    submit: ({ answer }: { answer: unknown }) => answer,
  },
  step(state, _action, { call }) {
    if (call.tool === 'submit')
      return { observation: `${call.result} after ${state.calls}`, reward: 1, done: true, success: true }
    return { observation: `${call.tool}: ${JSON.stringify(call.result)}`, reward: 0, done: false }
  },
})
const nextOf = ({ task, step }: { task: { input: unknown }; step: number }) =>
  (task.input as { actions: readonly (string | { tool: string; arguments: object })[] }).actions[step] as string

export const handyman = stepAgent({ name: 'handyman', environment: bench, act: nextOf })
export const hastyHandyman = handyman.withParams({ ...handyman.params, timeoutMs: 1500 })

/** Its observations are objects, and it lists what can be done. */
const calls = [
  { tool: 'up', arguments: { by: 2 } },
  { tool: 'fail', arguments: {} },
]
const counter = defineEnvironment({
  name: 'counter',
  reset: () => ({ state: { count: 0 }, observation: { count: 0 }, candidates: calls }),
  tools: {
    up: ({ by }: { by: number }, { state }) => (state.count += by),
    fail: () => {
      throw new Error('no')
    },
  },
  step: (state, _action, { call }) => ({
    ...{ observation: { count: call.result }, candidates: calls, reward: 0 },
    done: state.count > 3,
  }),
})
export const counting = stepAgent({
  name: 'counting',
  environment: counter,
  act: ({ candidates, observation, step }) =>
    'error' in observation ? candidates![0]! : candidates![step === 1 ? 1 : 0]!,
})
