import { mkdtempSync, readdirSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Runners } from 'manyworlds'
import { noop } from '../agents.ts'
import { median } from '../figures.ts'

const CALLS = 1000
const AT_ONCE = 200

/** Calls with one task each, one after another and at once. */
export async function calls(): Promise<void> {
  const store = mkdtempSync(join(tmpdir(), 'manyworlds-bench-'))
  const call = (id: number, where: string | false) =>
    Runners.runTask(noop.task({ id, text: '' }), { store: where, workerNum: 1 })
  for (let i = 0; i < 50; i++) await call(i, i % 2 === 0 ? store : false)
  const times = { without: [] as number[], with: [] as number[] }
  for (let i = 0; i < CALLS; i++)
    for (const [name, where] of [
      ['without', false],
      ['with', store],
    ] as const) {
      const began = performance.now()
      await call(i, where)
      times[name].push(performance.now() - began)
    }
  console.log(
    `${CALLS} calls one after another, median: ${median(times.without).toFixed(2)} ms without a store, ${median(times.with).toFixed(2)} ms with one`,
  )
  const began = performance.now()
  const open = readdirSync('/proc/self/fd').length
  const all = Promise.all(Array.from({ length: AT_ONCE }, (_, i) => call(i, store)))
  await new Promise((resolve) => setImmediate(resolve))
  const most = readdirSync('/proc/self/fd').length
  await all
  console.log(
    `${AT_ONCE} calls at once: ${Math.round(performance.now() - began)} ms, ${most - open} file descriptors more`,
  )
  await Runners.shutdown()
  const bytes = readdirSync(store).reduce((sum, name) => sum + statSync(join(store, name)).size, 0)
  console.log(
    `the store after ${CALLS + AT_ONCE + 25} runs: ${Math.round(bytes / 1024)} kB in ${readdirSync(store).length} files`,
  )
  rmSync(store, { recursive: true })
}
