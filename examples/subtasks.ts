// Tasks that start tasks: ctx.runTask, and sub-agents that are spread over the workers.
import { setTimeout as sleep } from 'node:timers/promises'
import { defineAgent, ParallelizableAgent, Runners } from 'manyworlds'

const read = defineAgent({
  name: 'read',
  run: async (chapter: string) => {
    await sleep(100)
    return `${chapter} (read by process ${process.pid})`
  },
})

const summarize = defineAgent({
  name: 'summarize',
  run: async (book: { title: string; chapters: number }, ctx) => {
    const chapters = Array.from({ length: book.chapters }, (_, i) => read.task(`chapter ${i + 1}`))
    // They run on any worker; this task's own slot is free for others while it waits.
    const responses = [...(await ctx.runTask(chapters)).values()]
    return { title: book.title, read: responses.map((response) => response.answer ?? response.error.message) }
  },
})

const optimist = defineAgent({ name: 'optimist', run: async () => ({ view: 'it will sell', pid: process.pid }) })
const critic = defineAgent({ name: 'critic', run: async () => ({ view: 'nobody reads that', pid: process.pid }) })
// Without `spread` the sub-agents share their task's worker; with it they are sub-tasks that any worker may take.
const panel = new ParallelizableAgent({
  name: 'panel',
  agents: [optimist, critic],
  spread: true,
  aggregateFunc: (_agent, { optimist, critic }) =>
    `optimist: ${optimist.answer?.view}; critic: ${critic.answer?.view}; ${optimist.answer?.pid === critic.answer?.pid ? 'one process' : 'two processes'}`,
})

// Two workers with one slot each: the parent waits, and its chapters still find room.
const runConf = { workerNum: 2, concurrency: 1 }
const book = await Runners.runTask(summarize.task({ title: 'Many worlds', chapters: 4 }), runConf)
if (!book.success) throw book.error
console.log(`${book.answer.title}:`)
for (const line of book.answer.read) console.log(`  ${line}`)

const verdict = await Runners.runTask(panel.task(undefined), runConf)
console.log(`panel: ${verdict.success ? verdict.answer : verdict.error.message}`)
