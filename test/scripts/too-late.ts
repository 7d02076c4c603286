import { defineAgent, Runners } from 'manyworlds'

const first = defineAgent({ name: 'first', run: async (input: number) => input })
await Runners.runTask(first.task(1))
console.log(JSON.stringify('first is done'))

const late = defineAgent({ name: 'late', run: async (input: number) => input })
await Runners.runTask(late.task(1))
