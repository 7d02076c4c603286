// A worker comes to the run below while the other module is still loading; that must not be held against that module.
import { setTimeout as sleep } from 'node:timers/promises'
import { defineAgent, isWorker, Runners, type TaskLike } from 'manyworlds'

const here = defineAgent({ name: 'here', run: async (input: number) => input })

async function main() {
  const tasks: TaskLike[] = [here.task(1)]
  if (!isWorker) tasks.push((await import('../agents/slow.ts')).slow.task(2))
  await sleep(200)
  const responses = await Runners.runTask(tasks, { workerNum: 1 })
  console.log(JSON.stringify([...responses.values()].map(({ answer }) => answer)))
}

main()
