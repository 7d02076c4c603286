import { Runners } from 'manyworlds'
import { doubler, slowNo } from '../../agents/graded.ts'

const [store] = process.argv.slice(2)
const tasks = Array.from({ length: 60 }, (_, index) => doubler.task(index, { id: `t${index}` }))
await Runners.runTask(tasks, { store: store!, runId: 'slow', grade: slowNo, workerNum: 1, concurrency: 100 })
