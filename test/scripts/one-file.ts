// Everything in one file, without a main(): workers read it down to the first awaited run.
import { defineAgent, isWorker, Runners } from 'manyworlds'

console.log(JSON.stringify('printed once'))
console.error('and this once')

const shout = defineAgent({ name: 'shout', run: async (input: string) => `${input.toUpperCase()}${SUFFIX}` })
const double = defineAgent({ name: 'double', run: (input: number) => ({ double: input * 2, isWorker }) })
const SUFFIX = '!'

const first = await Runners.runTask([
  { id: 'a', input: 'hello', agent: shout },
  { id: 'b', input: 2, agent: double },
])
console.log(JSON.stringify([...first.values()].map(({ id, answer }) => [id, answer])))
console.log(JSON.stringify({ isWorker }))
const second = await Runners.runTask(shout.task('again'))
console.log(JSON.stringify(second.answer))
