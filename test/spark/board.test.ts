import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { expect, test } from 'vitest'
import { Board } from '../../src/engines/spark/board.ts'

/** The part of a Spark session that a board uses. It keeps views. */
function fakeSpark() {
  const views = new Map<string, string>()
  const session = {
    run: async (command: unknown) => {
      const text = JSON.stringify(command, (_key, value) => (typeof value === 'bigint' ? String(value) : value))
      const [, created, query] = /VIEW (manyworlds_\w+) AS (SELECT.*?) AS t\(/.exec(text) ?? []
      if (created !== undefined) views.set(created, query!)
      else views.delete(/(manyworlds_\w+)/.exec(text)![1]!)
    },
    getConfig: async () => new Map(),
    async *rows() {
      for (const [tableName, query] of [...views]) yield { tableName, information: `View Text: ${query}` }
    },
  }
  return { views, board: () => new Board((question) => question(session as never)) }
}

test.runIf(process.platform === 'linux')('a driver that is a zombie holds no cores', async () => {
  const { views, board } = fakeSpark()
  const post = { name: 'a', since: 1, held: 2, wanted: 2, reserve: 1 }
  const [mine, other] = [board(), board()]
  await other.post(post)
  expect(await mine.post(post)).toMatchObject([{ id: other.id }])
  // `sleep` never asks for the exit code of the shell's other child.
  const parent = spawn('sh', ['-c', 'sleep 0 & echo $!; exec sleep 60'], { stdio: ['ignore', 'pipe', 'ignore'] })
  try {
    const [pid] = await once(parent.stdout, 'data')
    views.set(other.id, views.get(other.id)!.replace(`, ${process.pid})`, `, ${Number(pid)})`))
    await expect.poll(() => mine.post(post), { timeout: 5000 }).toEqual([])
  } finally {
    parent.kill('SIGKILL')
  }
})
