import { mkdtempSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Runners } from 'manyworlds'
import { clerk, deskTasks } from '../../examples/tool-desk/desk.ts'

const EPISODES = 5000
const LIMIT = 200

/** Bytes of a step of the tool desk on disk: the whole file, tasks and answers included, divided by its steps. */
export async function size(): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'manyworlds-steps-'))
  const file = join(folder, 'desk.sqlite')
  const tasks = deskTasks({ part: 'train', count: EPISODES, seed: 1 }).map((input) => clerk.task(input))
  let steps = 0
  let json = 0
  for await (const { trajectory } of Runners.streamTask(tasks, { workerNum: 2, store: file })) {
    steps += trajectory.length
    json += trajectory.reduce((sum, step) => sum + JSON.stringify(step).length, 0)
  }
  await Runners.shutdown()
  const bytes = statSync(file).size / steps
  rmSync(folder, { recursive: true })
  console.log(`${EPISODES} episodes of the tool desk, ${steps} steps, ${(steps / EPISODES).toFixed(1)} each`)
  console.log(`as JSON: ${(json / steps).toFixed(0)} bytes a step, without tasks and answers`)
  console.log(`in the run file: ${bytes.toFixed(0)} bytes a step, all tasks and answers included; at most ${LIMIT}`)
  if (bytes > LIMIT) process.exitCode = 1
}
