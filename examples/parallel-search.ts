// One question to several agents at once: ParallelizableAgent, without and with a function that makes one answer of many.
import { setTimeout as sleep } from 'node:timers/promises'
import { type ActionModel, defineAgent, ParallelizableAgent, Runners } from 'manyworlds'

const googleSearch = defineAgent({
  name: 'googleSearch',
  run: async (query: string) => {
    await sleep(80)
    return [`${query} - the long read`, `${query} - for beginners`]
  },
})
const bingSearch = defineAgent({
  name: 'bingSearch',
  run: async (query: string): Promise<string[]> => {
    await sleep(50)
    throw new Error(`rate limit reached while searching for ${query}`)
  },
})
const wiki = defineAgent({
  name: 'wiki',
  run: async (query: string) => {
    await sleep(30)
    return [`${query} (encyclopedia)`]
  },
})

const subAgents = [googleSearch, bingSearch, wiki] as const

// Without an aggregate function the answer is the results, by the name of the sub-agent.
const parallelSearch = new ParallelizableAgent({ name: 'parallelSearch', agents: subAgents })

// With one, it is what the function makes of them: the policyInfo of an ActionModel, or any other value.
function customAggregateFunc(
  agent: { name: string },
  results: Record<string, { success: boolean; answer?: string[] }>,
): ActionModel<string> {
  const found = Object.values(results).flatMap((result) => result.answer ?? [])
  const answered = Object.values(results).filter((result) => result.success).length
  return {
    policyInfo: `${agent.name}: ${found.length} hits from ${answered} of ${Object.keys(results).length} sources`,
  }
}
const aggregatedSearch = new ParallelizableAgent({
  name: 'aggregatedSearch',
  agents: subAgents,
  aggregateFunc: customAggregateFunc,
})

const separate = await Runners.runTask(parallelSearch.task('machine learning'))
if (!separate.success) throw separate.error
for (const [name, result] of Object.entries(separate.answer))
  console.log(`${name}: ${result.success ? result.answer.join('; ') : `failed, ${result.error.message}`}`)

const together = await Runners.runTask(aggregatedSearch.task('machine learning'))
console.log(together.success ? together.answer : together.error.message)
