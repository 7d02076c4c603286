import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Runners, type TaskResponse } from 'manyworlds'
import { heavy } from '../agents.ts'

/** Memory of the driver: many tasks in flight that record a megabyte each, and many responses that are kept. */
export async function memory(): Promise<void> {
  const store = mkdtempSync(join(tmpdir(), 'manyworlds-bench-'))
  let most = 0
  const timer = setInterval(() => {
    most = Math.max(most, process.memoryUsage.rss())
  }, 50)
  const before = process.memoryUsage.rss()
  const inFlight = Array.from({ length: 1024 }, (_, id) => heavy.task({ id, steps: 16, chars: 65_536, ms: 100 }))
  const responses = await Runners.runTask(inFlight, { store, workerNum: 2, concurrency: 512 })
  const wrong = [...responses.values()].filter(({ success }) => !success).length
  console.log(
    `1,024 tasks in flight with 1 MB of steps each: driver ${megabytes(before)} MB before, ${megabytes(most)} MB at most; ${wrong} failed`,
  )
  const kept: TaskResponse[] = []
  const sizes: string[] = []
  most = 0
  for (let round = 0; round < 4; round++) {
    const tasks = Array.from({ length: 500 }, (_, id) => heavy.task({ id, steps: 16, chars: 65_536, ms: 0 }))
    kept.push(...(await Runners.runTask(tasks, { store, workerNum: 2 })).values())
    global.gc?.()
    sizes.push(`${kept.length} kept: ${megabytes(process.memoryUsage().heapUsed)} MB of heap`)
  }
  clearInterval(timer)
  console.log(`responses with trajectories of 1 MB: ${sizes.join('; ')}; ${megabytes(most)} MB resident at most`)
  await Runners.shutdown()
  rmSync(store, { recursive: true, force: true })
}

const megabytes = (bytes: number) => Math.round(bytes / 2 ** 20)
