import { Runners } from 'manyworlds'
import { doubler, slowNo } from '../../agents/graded.ts'

const [store, resume] = process.argv.slice(2)
const tasks = Array.from({ length: 60 }, (_, index) => doubler.task(index, { id: `t${index}` }))
const run = resume === undefined ? { runId: 'slow' } : { resume }
await Runners.runTask(tasks, { store: store!, ...run, grade: slowNo, workerNum: 1, concurrency: 100 })
