/** The same tasks on this machine and on two nodes, which this example starts for itself. Yours run on other machines. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { defineAgent, isWorker, Runners } from 'manyworlds'

const classify = defineAgent({
  name: 'classify',
  run: async (review: string, ctx) => {
    await new Promise((resolve) => setTimeout(resolve, 20 + 40 * ctx.random()))
    return /great|love|superb/i.test(review) ? 'praise' : /bad|broken|never/i.test(review) ? 'complaint' : 'other'
  },
})

const words = ['great', 'broken', 'as described', 'superb', 'never again', 'green']
const tasks = Array.from({ length: 60 }, (_, i) =>
  classify.task(`Review ${i}: ${words[i % words.length]}`, { id: `r${i}` }),
)

// Workers read this script too, up to its first run: what only the driver should do stands behind this.
const nodes = isWorker ? [] : await Promise.all([startNode(), startNode()])
const addresses = nodes.map(({ address }) => address)

const here = await Runners.runTask(tasks, { workerNum: 2, store: false })
const there = await Runners.runTask(tasks, { engineName: 'nodes', nodes: { addresses }, store: false })

const places = new Set([...there.values()].map(({ worker }) => worker?.id.split('/')[0]))
const same = [...here].every(([id, { answer }]) => there.get(id)?.answer === answer)
console.log(`${there.size} tasks on ${places.size} nodes; the answers are ${same ? 'identical' : 'NOT identical'}`)

await Runners.shutdown()
for (const { child } of nodes) child.kill('SIGTERM')

/** `manyworlds node --listen 127.0.0.1:0`: at a port that is free, which it prints. */
async function startNode() {
  const command = fileURLToPath(new URL('./cli/main.js', import.meta.resolve('manyworlds')))
  const child = spawn(process.execPath, [command, 'node', '--listen', '127.0.0.1:0', '--workers', '1'], {
    stdio: ['ignore', 'ignore', 'pipe'],
  })
  process.on('exit', () => child.kill('SIGKILL'))
  const [line] = (await once(child.stderr, 'data')) as [Buffer]
  return { child, address: /ws:\/\/([^,\s]+)/.exec(line.toString())![1]! }
}
