import { Runners } from 'manyworlds'
import { echo, where } from '../agents/basics.ts'

const responses = await Runners.runTask([echo.task('from a module'), where.task(0)], { workerNum: 1 })
const [said, pid] = [...responses.values()].map(({ answer }) => answer)
console.log(JSON.stringify([said, pid !== process.pid]))
