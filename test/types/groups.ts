// Compiled by `npm run check`, never run: agents made of agents.
import {
  type ActionModel,
  type AnswerOf,
  defineAgent,
  type InputOf,
  ParallelizableAgent,
  Runners,
  SerialableAgent,
  type TaskResponse,
} from 'manyworlds'
import { same } from './equal.ts'

const google = defineAgent({ name: 'google', run: async (query: string) => [query] })
const wiki = defineAgent({ name: 'wiki', run: async (query: string) => ({ page: query }) })
const count = defineAgent({ name: 'count', run: async (list: string[]) => list.length })

// ---- results by name

const search = new ParallelizableAgent({ name: 'search', agents: [google, wiki] })
same<InputOf<typeof search>, string>(true)
same<(typeof search)['name'], 'search'>(true)
const response = await Runners.runTask(search.task('x'))
if (response.success) {
  const { google: a, wiki: b } = response.answer
  if (a.success) same<typeof a.answer, string[]>(true)
  else same<typeof a.error, Error>(true)
  if (b.success) same<typeof b.answer, { page: string }>(true)
  // @ts-expect-error: no sub-agent has that name
  response.answer.bing
}
const literal = await Runners.runTask([
  { input: 'x', agent: search },
  { input: ['y'], agent: count },
])
same<typeof literal, Map<string, TaskResponse<AnswerOf<typeof search> | number>>>(true)
await Runners.runTask([
  // @ts-expect-error: it takes what its sub-agents take
  { input: 1, agent: search },
])
// @ts-expect-error: it takes what its sub-agents take
search.task(1)

// ---- an aggregate

const merged = new ParallelizableAgent({
  agents: [google, wiki],
  aggregateFunc: (agent, results) => {
    same<typeof agent.name, string>(true)
    same<(typeof agent.agents)[0], typeof google>(true)
    return results.google.success ? results.google.answer : []
  },
})
same<AnswerOf<typeof merged>, string[]>(true)
const later = new ParallelizableAgent({
  agents: [google, wiki],
  aggregateFunc: async (_agent, results) => results.wiki,
})
same<AnswerOf<typeof later> extends { success: boolean } ? true : false, true>(true)
const action = new ParallelizableAgent({
  agents: [google],
  aggregateFunc: (): ActionModel<string> => ({ policyInfo: 'merged' }),
})
same<AnswerOf<typeof action>, string>(true)
const asyncAction = new ParallelizableAgent({
  agents: [google],
  aggregateFunc: async (): Promise<ActionModel<string> | number> => ({ policyInfo: 'merged', toolName: 'none' }),
})
same<AnswerOf<typeof asyncAction>, string | number>(true)
new ParallelizableAgent({
  agents: [google],
  // @ts-expect-error: no sub-agent has that name
  aggregateFunc: (_agent, results) => results.bing,
})
// @ts-expect-error: the key is aggregateFunc
new ParallelizableAgent({ agents: [google], aggregate_func: () => 1 })
// @ts-expect-error: not an agent
new ParallelizableAgent({ agents: [() => 1] })

// ---- groups of groups

const outer = new ParallelizableAgent({ name: 'outer', agents: [search, wiki], spread: true })
const nested = await Runners.runTask(outer.task('x'))
if (nested.success && nested.answer.search.success && nested.answer.search.answer.google.success)
  same<typeof nested.answer.search.answer.google.answer, string[]>(true)

// ---- one after the other

const chain = new SerialableAgent({ agents: [google, count] })
same<InputOf<typeof chain>, string>(true)
same<AnswerOf<typeof chain>, number>(true)
const told = new SerialableAgent({
  agents: [google, count],
  aggregateFunc: (_agent, results) => (results.count.success ? `${results.count.answer}` : ''),
})
same<AnswerOf<typeof told>, string>(true)

// ---- each link takes what the one before answers

const size = defineAgent({ name: 'size', run: async (wanted: number | string) => `${wanted}` })
const longer = new SerialableAgent({ agents: [google, count, size, google] })
same<AnswerOf<typeof longer>, string[]>(true)
// @ts-expect-error: wiki answers { page }, count takes string[]
new SerialableAgent({ agents: [wiki, count] })
// @ts-expect-error: the last link does not take a number
new SerialableAgent({ agents: [google, count, wiki], name: 'third' })
new SerialableAgent({
  // @ts-expect-error: also with an aggregate
  agents: [wiki, count],
  aggregateFunc: () => 1,
})
const parse = defineAgent({ name: 'parse', run: async (text: string) => JSON.parse(text) })
const read = defineAgent({ name: 'read', run: async (text: string): Promise<unknown> => text })
new SerialableAgent({ agents: [parse, count] })
// @ts-expect-error: what is unknown may be anything
new SerialableAgent({ agents: [read, count] })
declare const anyNumber: (typeof google)[]
new SerialableAgent({ agents: anyNumber })
const inner = new SerialableAgent({ name: 'inner', agents: [google, count] })
new SerialableAgent({ agents: [inner, size] })
// @ts-expect-error: a chain in a chain
new SerialableAgent({ agents: [inner, wiki] })
