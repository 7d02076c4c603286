// An engine of your own, given through `cls`: here every worker runs at a low priority. See custom-engine/nice-engine.ts.
import { getPriority } from 'node:os'
import { defineAgent, Runners } from 'manyworlds'
import { NiceEngine } from './custom-engine/nice-engine.ts'

const priority = defineAgent({ name: 'priority', run: () => getPriority() })
const doomed = defineAgent({ name: 'doomed', run: () => process.kill(process.pid, 'SIGKILL') })

const results = await Runners.runTask(
  [
    priority.task(undefined, { id: 'anywhere' }),
    // The engine gives its workers the label 'nice'; a task can insist on it.
    priority.task(undefined, { id: 'labelled', requires: ['nice'] }),
    doomed.task(undefined, { id: 'doomed' }),
  ],
  { cls: NiceEngine, workerNum: 2 },
)

console.log(`this process has priority ${getPriority()}`)
for (const [id, { status, answer, worker }] of results)
  console.log(`${id}: ${status}${answer === undefined ? '' : `, priority ${answer}`}, in worker ${worker?.id}`)
