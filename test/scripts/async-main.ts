import { setTimeout as sleep } from 'node:timers/promises'
import { defineAgent, Runners } from 'manyworlds'

const top = defineAgent({ name: 'top', run: async (input: number) => input + 1 })

async function main() {
  await sleep(20)
  const inside = defineAgent({ name: 'inside', run: async (input: number) => input * 10 })
  const responses = await Runners.runTask([top.task(1), inside.task(1)])
  console.log(JSON.stringify([...responses.values()].map(({ answer }) => answer)))
}

main()
