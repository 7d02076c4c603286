import { setTimeout as sleep } from 'node:timers/promises'
import { type ActionModel, defineAgent, ParallelizableAgent, SerialableAgent } from 'manyworlds'

// ---- the examples of AWorld's documentation

const googleSearch = defineAgent({ name: 'google_search', run: async (query: string) => `google: ${query}` })
const bingSearch = defineAgent({ name: 'bing_search', run: async (query: string) => ({ bing: query }) })
const wiki = defineAgent({ name: 'wiki', run: async (query: string) => [query.length] })
const subAgents = [googleSearch, bingSearch, wiki] as const

export const parallelSearch = new ParallelizableAgent({ name: 'parallel_search', agents: subAgents })

export const aggregated = new ParallelizableAgent({
  agents: subAgents,
  aggregateFunc: (agent, results): ActionModel<string> => {
    const found = agent.agents.filter(({ name }) => results[name].success).length
    return { policyInfo: `${agent.name}: ${found} of ${agent.agents.length}, ${results.google_search.answer}` }
  },
})

// ---- failures

const fails = defineAgent({
  name: 'fails',
  run: async (query: string) => Promise.reject(new RangeError(`no ${query}`)),
})
const failsOddly = defineAgent({ name: 'fails-oddly', run: async (_query: string) => Promise.reject('just text') })

export const oneFails = new ParallelizableAgent({ name: 'one-fails', agents: [googleSearch, fails, failsOddly] })
export const oneFailsSpread = new ParallelizableAgent({
  name: 'one-fails-spread',
  agents: [googleSearch, fails, failsOddly],
  spread: true,
})
export const allFail = new ParallelizableAgent({ name: 'all-fail', agents: [fails, failsOddly] })
export const allFailSpread = new ParallelizableAgent({
  name: 'all-fail-spread',
  agents: [fails, failsOddly],
  spread: true,
})
export const aggregateFails = new ParallelizableAgent({
  name: 'aggregate-fails',
  agents: [googleSearch],
  aggregateFunc: async () => {
    throw new TypeError('cannot add these up')
  },
})

// ---- what sub-agents have to themselves

const greedy = <const Name extends string>(name: Name) =>
  defineAgent({
    name,
    run: async (input: { list: string[] }) => {
      input.list.push(name)
      await sleep(1)
      return input.list
    },
  })
const ownInput = [greedy('greedy-a'), greedy('greedy-b')] as const
export const ownInputs = new ParallelizableAgent({ name: 'own-inputs', agents: ownInput })
export const ownInputsSpread = new ParallelizableAgent({ name: 'own-inputs-spread', agents: ownInput, spread: true })

let setups = 0
const counting = <const Name extends string>(name: Name) =>
  defineAgent({
    name,
    params: { tone: 'calm', table: new Map([['a', 1]]) },
    setup: async ({ table }) => ({ setups: ++setups, size: table.size }),
    run: async (first: string, ctx) => {
      await sleep(first === name ? 0 : 30)
      ctx.step({ action: 'look' })
      ctx.log(name)
      return {
        ...ctx.params,
        ...ctx.state,
        key: ctx.idempotencyKey,
        id: ctx.task.id,
        random: [ctx.random(), ctx.random()],
      }
    },
  })
const soon = counting('soon')
const late = counting('late')
export const contexts = new ParallelizableAgent({ name: 'contexts', agents: [soon, late] })
export const contextsOtherParams = new ParallelizableAgent({
  name: 'contexts-other-params',
  agents: [
    soon.withParams({
      tone: 'loud',
      table: new Map([
        ['a', 1],
        ['b', 2],
      ]),
    }),
    late,
  ],
})

// ---- nested

const leaf = defineAgent({ name: 'leaf', run: async (input: number) => input + 1 })
const inner = new ParallelizableAgent({ name: 'inner', agents: [leaf], spread: true })
const middle = new ParallelizableAgent({ name: 'middle', agents: [inner, leaf], spread: true })
export const deepSpread = new ParallelizableAgent({ name: 'deep-spread', agents: [middle, leaf], spread: true })
const innerHere = new ParallelizableAgent({ name: 'inner-here', agents: [leaf] })
export const deepHere = new ParallelizableAgent({ name: 'deep-here', agents: [innerHere, leaf] })

/** Together only if both run at once. */
const meet = <const Name extends string>(name: Name) =>
  defineAgent({
    name,
    run: async (_input: unknown, ctx) => {
      await sleep(100)
      return { at: Date.now(), worker: process.pid, id: ctx.task.id }
    },
  })
export const meeting = new ParallelizableAgent({
  name: 'meeting',
  agents: [meet('meet-a'), meet('meet-b')],
  spread: true,
})

/** Waits until it is told to stop. */
const waits = defineAgent({
  name: 'waits',
  run: (_input: unknown, ctx) =>
    new Promise((_, reject) => ctx.signal.addEventListener('abort', () => reject(ctx.signal.reason))),
})
export const waiting = new ParallelizableAgent({ name: 'waiting', agents: [waits], spread: true })

// ---- one after the other

const words = defineAgent({ name: 'words', run: async (text: string) => text.split(' ') })
const count = defineAgent({ name: 'count', run: async (list: string[]) => list.length })
const even = defineAgent({
  name: 'even',
  run: async (number: number) => {
    if (number % 2 === 1) throw new RangeError(`${number} is odd`)
    return true
  },
})
export const chain = new SerialableAgent({ name: 'chain', agents: [words, count, even] })
export const chainAggregated = new SerialableAgent({
  agents: [words, count],
  aggregateFunc: (agent, results) => ({ policyInfo: [agent.name, results.words.answer, results.count.answer] }),
})
export const chainOfGroups = new SerialableAgent({
  name: 'chain-of-groups',
  agents: [
    new ParallelizableAgent({
      name: 'first',
      agents: [words],
      aggregateFunc: (_agent, { words }) => words.answer ?? [],
    }),
    count,
  ],
})
const twoWords = defineAgent({ name: 'twoWords', run: async () => ['two', 'words'] })
export const chainWithoutInput = new SerialableAgent({ name: 'chain-without-input', agents: [twoWords, count] })
