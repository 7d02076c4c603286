import { statSync, truncateSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { defineAgent, ManyworldsError, Runners } from 'manyworlds'

/** On a disk that is nearly full. `mend-late`: room is made after the run has failed; `mend-soon`: while it waits. */
const [disk, how] = process.argv.slice(2) as [string, 'mend-late' | 'mend-soon']

const talk = defineAgent({
  name: 'talk',
  // Nothing that could be compressed.
  run: async (n: number) => ({ n, noise: Array.from({ length: 200 }, () => Math.random().toString(36)).join('') }),
})

const ballast = join(disk, 'ballast')
// A megabyte is left; when it is gone, there is enough for the log of many small commits too.
writeFileSync(ballast, Buffer.alloc(39 * 2 ** 20))
const tasks = Array.from({ length: 400 }, (_, n) => talk.task(n))
const makeRoom = () => truncateSync(ballast, 0)
let reported = 0
try {
  if (how === 'mend-soon') setTimeout(makeRoom, 2000)
  const results = await Runners.runTask(tasks, { store: disk, runId: 'r' })
  console.log(JSON.stringify({ finished: results.size }))
} catch (error) {
  if (!ManyworldsError.is(error)) throw error
  reported = (error as unknown as { responses: Map<string, unknown> }).responses.size
  console.log(JSON.stringify({ code: error.code, message: error.message, some: reported > 0 && reported < 400 }))
  makeRoom()
  const results = [...(await Runners.runTask(tasks, { store: disk, resume: 'r' })).values()]
  const restored = results.filter((response) => response.restored).length
  console.log(JSON.stringify({ answered: results.filter(({ success }) => success).length, kept: restored >= reported }))
}
console.log(JSON.stringify({ size: statSync(join(disk, 'store.sqlite')).size > 0 }))
