import { defineAgent, ManyworldsError, Runners } from 'manyworlds'

const a = defineAgent({ name: 'a', run: async (n: number) => n })

for (const config of [{ runId: 'new' }, { resume: 'old' }]) {
  try {
    await Runners.runTask(a.task(1), { store: process.argv[2]!, ...config })
  } catch (error) {
    if (!ManyworldsError.is(error)) throw error
    console.log(JSON.stringify({ code: error.code, message: error.message }))
  }
}
