import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { Runners } from '../../dist/index.js'
import { fellsItsNode, noting } from '../agents/nodes.ts'
import { type Daemon, startNode } from './daemon.ts'

/** Machines that are lost because of a task, or while it happens to be there. */

const nodes: Daemon[] = []
let folder: string
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'mw-lost-'))
})
afterEach(async () => {
  await Runners.shutdown()
  await Promise.all(nodes.splice(0).map((node) => node.kill()))
  rmSync(folder, { recursive: true })
})

/** A task that takes down its node so many times, among others; the others are not charged for it. */
async function run(times: number) {
  // Each is known as soon as it runs: where one cannot start, the others are ended all the same.
  const start = async () => nodes.push(await startNode({ args: ['--workers', '1'] }))
  await Promise.all(Array.from({ length: 8 }, start))
  const file = join(folder, 'culprit')
  const bystanders = Array.from({ length: 24 }, (_, n) =>
    noting.task({ ms: 400, file: join(folder, 'bystanders'), id: `b${n}` }, { id: `b${n}` }),
  )
  const responses = await Runners.runTask([fellsItsNode.task({ file, times }, { id: 'culprit' }), ...bystanders], {
    ...{ engineName: 'nodes', nodes: { addresses: nodes.map(({ address }) => address) } },
    ...{ concurrency: 4, store: false, keepWarmMs: 0 },
  })
  for (const [id, { status, attempts }] of responses)
    if (id !== 'culprit') expect([id, status, attempts]).toEqual([id, 'success', 1])
  return { response: responses.get('culprit')!, starts: readFileSync(file, 'utf8').split('\n').length - 1 }
}

test('a task whose node is lost five times is not charged', { timeout: 240_000 }, async () => {
  const { response, starts } = await run(5)
  expect(response).toMatchObject({ answer: 'survived', attempts: 1 })
  expect(starts).toBe(6)
})

test('a task that takes down every node is, for those that it lost alone', { timeout: 240_000 }, async () => {
  const { response, starts } = await run(100)
  expect(response).toMatchObject({
    ...{ status: 'crashed', attempts: 1 },
    error: { code: 'WORKER_CRASHED', message: expect.stringContaining('3 times a machine') },
  })
  // Three in whatever company, three alone; and with others that were suspected of the same, perhaps one between.
  expect(starts).toBeGreaterThanOrEqual(6)
})
