import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Runners } from 'manyworlds'
import { afterAll, expect, it } from 'vitest'
import { meeting } from '../agents/meeting.ts'

const folder = mkdtempSync(join(tmpdir(), 'manyworlds-meeting-'))
afterAll(async () => {
  await Runners.shutdown()
  rmSync(folder, { recursive: true })
})

it('an agent with a set-up runs as many tasks at once as others, from the first on', async () => {
  const file = join(folder, 'all')
  const tasks = Array.from({ length: 16 }, () => meeting.task({ file, count: 16 }))
  const responses = [...(await Runners.runTask(tasks, { workerNum: 2, concurrency: 8 })).values()]
  expect(responses.map(({ answer }) => answer)).toEqual(Array(16).fill(16))
})
