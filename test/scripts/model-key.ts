import { defineAgent, Runners } from 'manyworlds'

const needsKey = defineAgent({
  name: 'needs-key',
  run: async () => {
    const key = process.env.OPENAI_API_KEY
    if (key === undefined) throw new Error('OPENAI_API_KEY is missing')
    return key
  },
})
const passed = process.argv.includes('--pass') ? { OPENAI_API_KEY: process.env.OPENAI_API_KEY } : {}
const { answer, error } = await Runners.runTask(needsKey.task(0), { env: passed })
console.log(JSON.stringify(answer ?? error?.message))
