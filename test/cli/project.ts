import { userProject } from '../support/user-project.ts'

/**
 * A script with tasks of `ms` milliseconds each; those whose number is in `bad` fail. It prints what it got. Tasks from number
 * `gated` on end only when there is a file `open`: the run goes on for as long as a test needs it.
 */
export const script = (count: number, ms: number, bad: readonly number[] = [], gated = Number.POSITIVE_INFINITY) => `
import { appendFileSync, existsSync } from 'node:fs'
import { defineAgent, Runners } from 'manyworlds'
const work = defineAgent({
  name: 'work',
  run: async (n: number, ctx) => {
    appendFileSync('ledger.txt', ctx.task.id + '\\n')
    ctx.step({ action: 'wait', observation: n })
    await new Promise((done, failed) => {
      setTimeout(done, ${ms})
      ctx.signal.addEventListener('abort', () => failed(ctx.signal.reason))
    })
    while (n >= ${gated} && !existsSync('open')) {
      ctx.signal.throwIfAborted()
      await new Promise((done) => setTimeout(done, 20))
    }
    if (${JSON.stringify(bad)}.includes(n)) throw new Error('bad luck with ' + n)
    return { n }
  },
})
const results = await Runners.runTask(
  Array.from({ length: ${count} }, (_, n) => work.task(n, { id: 't' + n })),
  { workerNum: 2, concurrency: 4 },
)
console.log('the script got', results.size)
`

/** A project with scripts, as a user would have it; `path()` gives paths in it. */
export function project(files: Readonly<Record<string, string>>) {
  const path = userProject({ 'package.json': '{"type":"module"}', ...files })
  return { path, options: { cwd: path(''), env: { MANYWORLDS_STORE: '' } } }
}
