import { defineAgent, Runners } from 'manyworlds'

const one = defineAgent({ name: 'twice', run: async () => 1 })
const two = defineAgent({ name: 'twice', run: async () => 2 })
await Runners.runTask([one.task(0), two.task(0)])
