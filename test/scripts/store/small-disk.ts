import { statSync, truncateSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { setTimeout as sleep } from 'node:timers/promises'
import { defineAgent, ManyworldsError, Runners } from 'manyworlds'

/** On a disk that is nearly full. `mend-late`: room is made after the run has failed; `mend-soon`: while it waits. */
const [disk, how] = process.argv.slice(2) as [string, 'mend-late' | 'mend-soon']

const talk = defineAgent({
  name: 'talk',
  run: async (n: number, ctx) => {
    // The first ones are committed by themselves, before the disk is full.
    if (n >= 20) await ctx.ask('committed')
    // Nothing that could be compressed.
    return { n, noise: Array.from({ length: 200 }, () => Math.random().toString(36)).join('') }
  },
})

/** Resolves when the store has an answer. */
async function committed(): Promise<void> {
  for (;;) {
    try {
      using db = new DatabaseSync(join(disk, 'store.sqlite'), { readOnly: true, timeout: 5000 })
      if (Number(db.prepare('SELECT count(*) AS n FROM responses').get()!.n) > 0) return
    } catch {
      // There is no store yet.
    }
    await sleep(20)
  }
}
let once: Promise<void> | undefined
const services = { committed: () => (once ??= committed()) }

const ballast = join(disk, 'ballast')
// A megabyte is left; when it is gone, there is enough for the log of many small commits too.
writeFileSync(ballast, Buffer.alloc(39 * 2 ** 20))
const tasks = Array.from({ length: 400 }, (_, n) => talk.task(n))
const makeRoom = () => truncateSync(ballast, 0)
/** A second after these words were printed. */
function whenSaid(words: string, act: () => void): void {
  const { stderr } = process
  const write = stderr.write.bind(stderr)
  stderr.write = ((text: string, ...rest: never[]) => {
    if (String(text).includes(words)) setTimeout(act, 1000)
    return write(text, ...rest)
  }) as typeof stderr.write
}

let reported = 0
try {
  if (how === 'mend-soon') whenSaid('the disk is full', makeRoom)
  const results = await Runners.runTask(tasks, { store: disk, runId: 'r', services })
  console.log(JSON.stringify({ finished: results.size }))
} catch (error) {
  if (!ManyworldsError.is(error)) throw error
  reported = (error as unknown as { responses: Map<string, unknown> }).responses.size
  console.log(JSON.stringify({ code: error.code, message: error.message, some: reported > 0 && reported < 400 }))
  makeRoom()
  const results = [...(await Runners.runTask(tasks, { store: disk, resume: 'r', services })).values()]
  const restored = results.filter((response) => response.restored).length
  console.log(JSON.stringify({ answered: results.filter(({ success }) => success).length, kept: restored >= reported }))
}
console.log(JSON.stringify({ size: statSync(join(disk, 'store.sqlite')).size > 0 }))
