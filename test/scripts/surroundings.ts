import { defineAgent, Runners } from 'manyworlds'

const look = defineAgent({
  name: 'look',
  run: async (variables: string[]) => ({
    argv: process.argv,
    execArgv: process.execArgv,
    cwd: process.cwd(),
    debugged: (await import('node:inspector')).url() !== undefined,
    env: Object.fromEntries(variables.map((name) => [name, process.env[name] ?? null])),
    ours: Object.keys(process.env).filter((name) => /^MANYWORLDS_(?!TEST|STORE)/.test(name)),
  }),
})
const { answer } = await Runners.runTask(look.task(['PATH', 'MY_SETTING', 'OPENAI_API_KEY', 'NODE_OPTIONS']), {
  env: { MY_SETTING: 'given' },
})
console.log(JSON.stringify({ driver: { argv: process.argv, cwd: process.cwd() }, worker: answer }))
