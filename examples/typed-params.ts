// What varies is data: params are sent to the workers, setup runs once in each, and the types flow from end to end.
import { defineAgent, Runners } from 'manyworlds'

interface Params {
  readonly language: 'en' | 'fr'
  readonly shout: boolean
}

const greet = defineAgent({
  name: 'greet',
  params: { language: 'en', shout: false } as Params,
  // Once per worker and params, before the first task: open connections here, load what is heavy.
  setup: async ({ language }) => ({ word: language === 'fr' ? 'bonjour' : 'hello', builtBy: process.pid }),
  run: async (input: { name: string; times: number }, ctx) => {
    const line = `${ctx.state.word} ${input.name}`
    const words = Array.from({ length: input.times }, () => (ctx.params.shout ? line.toUpperCase() : line))
    return { words, sameProcess: ctx.state.builtBy === process.pid }
  },
})
const length = defineAgent({ name: 'length', run: (text: string) => text.length })

// The same agent with other params: no closure, so nothing that a worker could not know.
const saluer = greet.withParams({ language: 'fr', shout: true })

const results = await Runners.runTask([
  { id: 'english', input: { name: 'Ada', times: 2 }, agent: greet },
  { id: 'french', input: { name: 'Alan', times: 1 }, agent: saluer },
  { id: 'length', input: 'agents of several types mix in one array', agent: length },
  // { input: 42, agent: length } is an error of the compiler: the input is checked against the agent.
])

for (const [id, response] of results) {
  if (!response.success) throw response.error
  const { answer } = response // number | { words: string[]; sameProcess: boolean }
  if (typeof answer === 'number') console.log(`${id}: ${answer} characters`)
  else console.log(`${id}: ${answer.words.join(', ')} (set up in the same process: ${answer.sameProcess})`)
}
