// Compiled by `npm run check`, never run: what the compiler infers of an environment, and what it refuses.
import type { Agent } from 'manyworlds'
import {
  defineEnvironment,
  type Environment,
  fixedPolicy,
  type Policy,
  randomPolicy,
  type StepAgentParams,
  stepAgent,
  type ToolCall,
  type ToolFailure,
} from 'manyworlds/agents'
import { same } from './equal.ts'

// ---- from the task to observation and action, without annotations but that of the input

const walk = defineEnvironment({
  name: 'walk',
  reset: ({ input }: { input: { width: number } }) => ({
    state: { at: 0, width: input.width },
    observation: { at: 0 },
    candidates: ['left', 'right'],
  }),
  step(state, action, ctx) {
    same<typeof state, { at: number; width: number }>(true)
    same<typeof action, 'left' | 'right'>(true)
    same<typeof ctx.call, undefined>(true)
    return { observation: { at: state.at + 1 }, reward: 0, done: false }
  },
  close: (state) => same<typeof state.at, number>(true),
})
same<
  typeof walk,
  Environment<{ width: number }, { at: number }, 'left' | 'right', { at: number; width: number }, 'walk'>
>(true)

const later = defineEnvironment({
  name: 'async',
  reset: async ({ input, tools }: { input: string; tools?: readonly string[] }, ctx) => {
    same<typeof ctx.signal, AbortSignal>(true)
    same<typeof tools, readonly string[] | undefined>(true)
    return { state: new Map<string, number>(), observation: input }
  },
  step: async (state, action: 'go' | 'stay') => {
    same<typeof state, Map<string, number>>(true)
    return { observation: action, reward: 1, done: true, success: true }
  },
})
same<typeof later, Environment<string, string, 'go' | 'stay', Map<string, number>, 'async'>>(true)

const both = defineEnvironment({
  name: 'both',
  reset: () => ({ state: 0, observation: 0, candidates: ['go', 'stay'] }),
  step: (state, action: 'go' | 'stay') => ({
    state: state + 1,
    observation: state,
    reward: 0,
    done: action === 'stay',
  }),
})
same<typeof both, Environment<unknown, number, 'go' | 'stay', number, 'both'>>(true)

// ---- tools

const desk = defineEnvironment({
  name: 'desk',
  reset: ({ input }: { input: string }) => ({ state: { sum: 0 }, observation: input }),
  tools: {
    add: ({ a, b }: { a: number; b: number }, ctx) => {
      same<typeof ctx.state, { sum: number }>(true)
      return a + b
    },
    search: { description: 'looks for pages', run: async ({ query }: { query: string }) => [query] },
    submit: (args) => args.answer,
  },
  step(state, action, { call }) {
    same<typeof state, { sum: number }>(true)
    same<typeof action, string | ToolCall>(true)
    if (call.tool === 'add') same<typeof call.result, number>(true)
    if (call.tool === 'search') same<typeof call.result, string[]>(true)
    if (call.tool === 'submit') same<typeof call.result, unknown>(true)
    return { observation: 'x', reward: 0, done: false }
  },
})
same<typeof desk, Environment<string, string, string | ToolCall, { sum: number }, 'desk'>>(true)

const objects = defineEnvironment({
  name: 'objects',
  reset: () => ({ state: 0, observation: { n: 1 } }),
  tools: { one: () => 1 },
  step: () => ({ observation: { n: 2 }, reward: 0, done: true }),
})
same<typeof objects, Environment<unknown, { n: number } | ToolFailure, string | ToolCall, number, 'objects'>>(true)

// ---- mistakes

defineEnvironment({
  name: 'x',
  reset: () => ({ state: 0, observation: 'text' }),
  // @ts-expect-error: an observation of another type
  step: () => ({ observation: 1, reward: 0, done: false }),
})
defineEnvironment({
  name: 'x',
  reset: () => ({ state: 0, observation: 'text', candidates: ['left', 'right'] }),
  // @ts-expect-error: a candidate that is no action
  step: (_state, action) => ({ observation: action, reward: 0, done: false, candidates: ['up'] }),
})
defineEnvironment({
  name: 'x',
  reset: () => ({ state: { at: 0 }, observation: 'text' }),
  // @ts-expect-error: a state of another type
  step: () => ({ state: { by: 0 }, observation: 'text', reward: 0, done: false }),
})
defineEnvironment({
  name: 'x',
  reset: () => ({ state: 0, observation: 'text' }),
  // @ts-expect-error: no reward
  step: () => ({ observation: 'text', done: false }),
})
defineEnvironment({
  name: 'x',
  // @ts-expect-error: no observation
  reset: () => ({ state: 0 }),
  step: () => ({ observation: 'text', reward: 0, done: false }),
})
// @ts-expect-error: no step
defineEnvironment({ name: 'x', reset: () => ({ state: 0, observation: 'text' }) })
defineEnvironment({
  name: 'x',
  reset: () => ({ state: 0, observation: 'text' }),
  step: () => ({ observation: 'text', reward: 0, done: false }),
  // @ts-expect-error: unknown key
  maxSteps: 10,
})
defineEnvironment({
  name: 'x',
  // @ts-expect-error: nothing that an environment is given has the ground truth
  reset: ({ groundTruth }: { input: string; groundTruth: string }) => ({ state: 0, observation: groundTruth }),
  step: () => ({ observation: 'text', reward: 0, done: false }),
})

// ---- step agents

const climber = stepAgent({ name: 'climber', environment: walk, policy: randomPolicy() })
same<typeof climber, Agent<{ width: number }, { at: number }, StepAgentParams, 'climber'>>(true)
climber.task({ width: 3 }, { tools: ['search'] })
// @ts-expect-error: the input of the environment
climber.task('wide')
climber.withParams({ ...climber.params, mode: 'greedy', maxSteps: 3 })
// @ts-expect-error: no such mode
climber.withParams({ ...climber.params, mode: 'best' })

stepAgent({ name: 'x', environment: walk, policy: fixedPolicy('left') })
stepAgent({
  name: 'x',
  environment: walk,
  policy: fixedPolicy(({ at }: { at: number }) => (at > 3 ? 'left' : 'right')),
})
stepAgent({ name: 'x', environment: walk, act: () => ({ action: 'left', logProb: -1 }) })
stepAgent({
  name: 'x',
  environment: walk,
  act: async ({ observation, candidates, random, step, signal, task }, ctx) => {
    same<typeof observation, { at: number }>(true)
    same<typeof candidates, readonly ('left' | 'right')[] | undefined>(true)
    same<typeof signal, AbortSignal>(true)
    same<typeof step, number>(true)
    same<typeof task.id, string>(true)
    await ctx.ask('permit')
    return random() < 0.5 ? 'left' : 'right'
  },
})
stepAgent({ name: 'x', environment: desk, act: () => 'use_tool[add] with a[1] b[2]' })
stepAgent({ name: 'x', environment: desk, act: () => ({ tool: 'add', arguments: { a: 1, b: 2 } }) })
stepAgent({
  name: 'x',
  environment: objects,
  act: ({ observation }) => ('error' in observation ? 'use_tool[one]' : `use_tool[one] with n[${observation.n}]`),
})
const shared: Policy = randomPolicy()
same<typeof shared.name, string>(true)
const never = randomPolicy()
stepAgent({ name: 'x', environment: walk, policy: never })

// @ts-expect-error: it has no such action
stepAgent({ name: 'x', environment: walk, act: () => 'up' })
// @ts-expect-error: it has no such action
stepAgent({ name: 'x', environment: walk, act: async () => ({ action: 'up', logProb: 0 }) })
// @ts-expect-error: it has no such action
stepAgent({ name: 'x', environment: walk, policy: fixedPolicy('up') })
stepAgent({
  name: 'x',
  environment: walk,
  // @ts-expect-error: it sees no such observation
  policy: fixedPolicy(({ from }: { from: number }) => (from ? 'left' : 'right')),
})
// @ts-expect-error: a log-probability is a number
stepAgent({ name: 'x', environment: walk, act: () => ({ action: 'left', logProb: 'high' }) })
// @ts-expect-error: one of the two
stepAgent({ name: 'x', environment: walk })
// @ts-expect-error: and not both
stepAgent({ name: 'x', environment: walk, policy: randomPolicy(), act: () => 'left' })
// @ts-expect-error: no environment
stepAgent({ name: 'x', act: () => 'left' })
