// The script is parked at once in a worker, while the other module is still loading; that must not be held against it.
import { defineAgent, Runners } from 'manyworlds'
import { slow } from '../agents/slow.ts'

const here = defineAgent({ name: 'here', run: async (input: number) => input })

async function main() {
  const responses = await Runners.runTask([here.task(1), slow.task(2)], { workerNum: 1 })
  console.log(JSON.stringify([...responses.values()].map(({ answer }) => answer)))
}

main()
