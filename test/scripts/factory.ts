import { Runners } from 'manyworlds'
import { makeAdder } from '../agents/factory.ts'

const one = makeAdder(1)
const ten = makeAdder(10)
const responses = await Runners.runTask([one.task(1), ten.task(1), one.withParams({ by: 5 }).task(1)])
console.log(JSON.stringify([...responses.values()].map(({ answer }) => answer)))
