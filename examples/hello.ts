// The smallest program: one agent, three tasks, run at once in worker processes.
import { defineAgent, Runners } from 'manyworlds'

const explain = defineAgent({
  name: 'explain',
  run: async (question: string, ctx) => {
    ctx.step({ action: 'look it up', observation: `something about ${question}` })
    return `${question} This is what process ${process.pid} has to say.`
  },
})

const results = await Runners.runTask([
  { id: 'task1', input: 'What is machine learning?', agent: explain },
  { id: 'task2', input: 'What are neural networks?', agent: explain },
  explain.task('What is deep learning?'), // ids are optional: this one is '#3'
])

for (const [id, response] of results) {
  if (response.success) console.log(`${id}: ${response.answer}`)
  else console.error(`${id}: ${response.status}: ${response.error.message}`)
}
