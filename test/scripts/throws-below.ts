// What happens below the definition is the driver's affair: the agent is there.
import { defineAgent, isWorker, Runners } from 'manyworlds'

const there = defineAgent({ name: 'there', run: async (input: number) => input })
if (isWorker) throw new RangeError('too late to matter')
console.log(JSON.stringify((await Runners.runTask(there.task(7))).answer))
