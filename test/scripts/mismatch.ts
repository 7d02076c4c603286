import { defineAgent, isWorker, Runners } from 'manyworlds'

const run = isWorker ? async () => 'the worker’s' : async () => 'the driver’s'
const two = defineAgent({ name: 'two-faced', run })
console.log(JSON.stringify((await Runners.runTask(two.task(1))).answer))
