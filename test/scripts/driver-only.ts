import { defineAgent, isWorker, Runners } from 'manyworlds'

if (!isWorker) {
  const hidden = defineAgent({ name: 'hidden', run: async (input: number) => input })
  await Runners.runTask(hidden.task(1))
}
