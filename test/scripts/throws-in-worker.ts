import { defineAgent, isWorker, Runners } from 'manyworlds'

if (isWorker) throw new RangeError('this machine has no such file')
const never = defineAgent({ name: 'never', run: async (input: number) => input })
await Runners.runTask([never.task(1), never.task(2)])
