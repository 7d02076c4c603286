// Tasks that need each other: a chain (sequenceDependent), and a graph (dependsOn).
import { defineAgent, Runners } from 'manyworlds'

const addWord = defineAgent({
  name: 'add-word',
  // Every task keeps its own input; the answer of the task before is in ctx.previous.
  run: (word: string, ctx) => (ctx.previous === undefined ? word : `${ctx.previous} ${word}`),
})

const research = defineAgent({
  name: 'research',
  run: (topic: string) => {
    if (topic === 'prices') throw new Error('the price list is behind a login')
    return `notes on ${topic}`
  },
})
const write = defineAgent({
  name: 'write',
  run: (title: string, ctx) => `${title}: ${[...ctx.results.values()].join(' + ')}`,
})

const sentence = await Runners.runTask(
  ['agents', 'work', 'one', 'after', 'another'].map((word) => addWord.task(word, { id: word })),
  { sequenceDependent: true },
)
for (const { id, answer } of sentence.values()) console.log(`sequence: ${id.padEnd(8)} -> ${answer}`)

const graph = await Runners.runTask([
  research.task('history', { id: 'history' }),
  research.task('rivals', { id: 'rivals' }),
  research.task('prices', { id: 'prices' }),
  write.task('Overview', { id: 'overview', dependsOn: ['history', 'rivals'] }),
  write.task('Offer', { id: 'offer', dependsOn: ['overview', 'prices'] }),
])
for (const response of graph.values()) {
  const end = response.success ? response.answer : `${response.status} (${response.error.code})`
  console.log(`graph: ${response.id.padEnd(8)} -> ${end}`)
}
