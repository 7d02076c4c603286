import { type ChildProcess, spawn } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest'
import { Runners } from '../../dist/index.js'
import { openForReading } from '../../dist/store/open-for-reading.js'
import { killer, turns } from '../agents/models.ts'
import { type ModelServer, startModelServer } from './scripted-server.ts'

const DRIVER = fileURLToPath(new URL('drivers/paying.ts', import.meta.url))
const CRASHING = fileURLToPath(new URL('drivers/crashing.ts', import.meta.url))
const CALLS = 64 * 4

let server: ModelServer
beforeAll(async () => {
  server = await startModelServer({ seed: 3 })
})
afterAll(async () => {
  await Runners.shutdown()
  await server.close()
})

interface Driver {
  readonly child: ChildProcess
  readonly exited: Promise<number | string | null>
  stdout(): string
  stderr(): string
}

function start(store: string, via: string, driver = DRIVER): Driver {
  const child = spawn(process.execPath, [driver, server.baseURL, store, via], { stdio: ['ignore', 'pipe', 'pipe'] })
  onTestFinished(() => void child.kill('SIGKILL'))
  let [stdout, stderr] = ['', '']
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    stdout += text
  })
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    stderr += text
  })
  const exited = new Promise<number | string | null>((resolve) =>
    child.once('close', (code, signal) => resolve(signal ?? code)),
  )
  return { child, exited, stdout: () => stdout, stderr: () => stderr }
}

const storeForTest = () => {
  const store = mkdtempSync(join(tmpdir(), 'mw-paying-'))
  onTestFinished(() => rmSync(store, { recursive: true, force: true }))
  return store
}

test.each(['driver', 'direct'])(
  'a killed driver pays for no committed answer again, via %s',
  { timeout: 180_000 },
  async (via) => {
    const before = await server.stats()
    const store = storeForTest()
    const first = start(store, via)
    // In the middle: some conversations are in their second turn, and each has a call under way.
    for (const end = Date.now() + 60_000; (await server.stats()).succeeded - before.succeeded < 100; )
      if (Date.now() > end) throw new Error(`no calls: ${first.stderr()}`)
    first.child.kill('SIGKILL')
    expect(await first.exited).toBe('SIGKILL')
    const stored = countAnswers(store)
    const paid = (await server.stats()).succeeded - before.succeeded

    const second = start(store, via)
    expect([await second.exited, second.stderr().match(/error/i)]).toEqual([0, null])
    const responses = JSON.parse(second.stdout()) as { success: boolean; answer: string[] }[]
    expect(responses.filter(({ success, answer }) => success && answer.length === 4)).toHaveLength(64)

    const after = await server.stats()
    const repeated = Number(/(\d+) model calls? (?:was|were) made again/.exec(second.stderr())?.[1] ?? 0)
    expect(stored).toBeGreaterThan(0)
    // Every stored answer was used again: what was paid in all is what had to be, and what was in flight.
    expect(after.succeeded - before.succeeded).toBeLessThanOrEqual(CALLS + (paid - stored) + 64)
    expect(repeated).toBeGreaterThan(0)
    expect(repeated).toBeLessThanOrEqual(64)
    const paidTwice = Object.values(after.paidTwice).length - Object.values(before.paidTwice).length
    expect(paidTwice).toBeLessThanOrEqual(repeated)
  },
)

function countAnswers(store: string): number {
  using db = openForReading(join(store, 'store.sqlite'))
  return (db.prepare('SELECT count(*) AS n FROM answers').get() as { n: number }).n
}

test('tasks whose worker dies get the answers that they had', { timeout: 60_000 }, async () => {
  const names = Array.from({ length: 6 }, (_, n) => `neighbour ${n}`)
  const responses = await Runners.runTask([killer.task(900), ...names.map((name) => turns.task({ name, turns: 4 }))], {
    ...{ store: storeForTest(), workerNum: 1, concurrency: 16 },
    models: { m: { baseURL: server.baseURL, model: 'text+latency:300', requestsPerMinute: 100_000 } },
  })
  const [killed, ...others] = [...responses.values()]
  expect(killed).toMatchObject({ status: 'crashed' })
  for (const response of others) expect(response).toMatchObject({ success: true, attempts: 1 })
  for (const name of names) expect(await server.requests({ body: `${name}, turn 0` })).toHaveLength(1)
})

test.each(['driver', 'direct'])(
  'calls that waited for their turn when a worker died are not said to be made again, via %s',
  { timeout: 60_000 },
  async (via) => {
    const driver = start(storeForTest(), via, CRASHING)
    expect([await driver.exited, driver.stderr().match(/error/i)]).toEqual([0, null])
    const responses = JSON.parse(driver.stdout()) as { success: boolean }[]
    expect(responses.filter(({ success }) => success)).toHaveLength(24)
    // Two were under way each time: the worker dies until it is known whose fault it is.
    const repeated = Number(/(\d+) model calls? (?:was|were) made again/.exec(driver.stderr())?.[1])
    expect(repeated).toBeGreaterThan(0)
    expect(repeated).toBeLessThanOrEqual(6)
  },
)
