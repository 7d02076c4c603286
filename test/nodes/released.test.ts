import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { project } from '../bundle/project.ts'
import { type Daemon, startNode } from './daemon.ts'

/** A program that lives long, and makes many runs on other machines. */

let node: Daemon
beforeAll(async () => {
  node = await startNode()
})
afterAll(() => node.kill('SIGTERM'))

const RUNS = 3
/** The last of each kind may still be on somebody's stack. */
const MOST_KEPT = 2

test('nothing is kept of runs whose workers are not kept warm', async () => {
  const folder = project({
    'script.ts': `import { defineAgent, DistributedExecutor, NodesRuntime, Runners } from ${JSON.stringify(new URL('../../dist/index.js', import.meta.url).pathname)}
      const double = defineAgent({ name: 'double', run: (n: number) => 2 * n })
      const engines: WeakRef<object>[] = []
      class Tracked extends NodesRuntime {
        constructor() { super({ addresses: ['${node.address}'] }); engines.push(new WeakRef(this)) }
      }
      const config = { cls: Tracked, keepWarmMs: 0, store: false as const, workerNum: 1 }
      const answers: unknown[] = []
      for (let n = 0; n < ${RUNS}; n++) answers.push((await Runners.runTask(double.task(n), config)).answer)
      const listeners = process.listenerCount('beforeExit')
      for (let n = 0; n < ${RUNS}; n++) {
        const { keepWarmMs: _, ...rest } = config
        await using executor = new DistributedExecutor(rest)
        executor.submitTask(double.task(n))
        answers.push([...(await executor.collectResults()).values()][0]!.answer)
      }
      await Runners.shutdown()
      const keptNow = () => engines.filter((engine) => engine.deref() !== undefined).length
      // What ends, ends a moment later.
      for (const until = Date.now() + 30_000; Date.now() < until; ) {
        globalThis.gc!()
        await new Promise((r) => setTimeout(r, 50))
        if (keptNow() <= ${MOST_KEPT}) break
      }
      const kept = keptNow()
      console.log(JSON.stringify({ answers, kept, more: process.listenerCount('beforeExit') - listeners }))`,
  })
  const { VITEST: _, ...env } = process.env
  const { stdout } = await promisify(execFile)(process.execPath, ['--expose-gc', 'script.ts'], { cwd: folder, env })
  const { answers, kept, more } = JSON.parse(stdout) as { answers: number[]; kept: number; more: number }
  const doubled = Array.from({ length: RUNS }, (_, n) => 2 * n)
  expect(answers).toEqual([...doubled, ...doubled])
  expect(kept).toBeLessThanOrEqual(MOST_KEPT)
  expect(more).toBe(0)
}, 120_000)
