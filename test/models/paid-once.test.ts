import { type ChildProcess, spawn } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest'
import { Runners, type RunProgress } from '../../dist/index.js'
import { RunFile } from '../../dist/store/index.js'
import { openForReading } from '../../dist/store/open-for-reading.js'
import { totalUsage } from '../../dist/trajectory/usage.js'
import { killer, turns } from '../agents/models.ts'
import { type ModelServer, startModelServer } from './scripted-server.ts'

const DRIVER = fileURLToPath(new URL('drivers/paying.ts', import.meta.url))
const CRASHING = fileURLToPath(new URL('drivers/crashing.ts', import.meta.url))
const CALLS = 64 * 4
/** Of all calls: the driver cannot end before it is killed, however late this test is. */
const HOLD_AFTER = 160

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

function start(store: string, via: string, { driver = DRIVER, on = server } = {}): Driver {
  const child = spawn(process.execPath, [driver, on.baseURL, store, via], { stdio: ['ignore', 'pipe', 'pipe'] })
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
  { timeout: 300_000 },
  async (via) => {
    const own = await startModelServer({ seed: 3, holdAfter: HOLD_AFTER })
    onTestFinished(() => own.close())
    const store = storeForTest()
    const first = start(store, via, { on: own })
    // In the middle: some conversations are in their second turn, and each has a call under way.
    for (const end = Date.now() + 120_000; (await own.stats()).succeeded < 100; )
      if (Date.now() > end) throw new Error(`no calls: ${first.stderr()}`)
    first.child.kill('SIGKILL')
    expect(await first.exited).toBe('SIGKILL')
    const stored = countOf(store, 'answers')
    // Until the server has seen that everybody who asked is gone.
    await expect.poll(async () => (await own.stats()).inFlight, { timeout: 60_000 }).toBe(0)
    const paid = (await own.stats()).succeeded

    await own.release()
    const second = start(store, via, { on: own })
    expect([await second.exited, second.stderr().match(/error/i)]).toEqual([0, null])
    const responses = JSON.parse(second.stdout()) as { success: boolean; answer: string[] }[]
    expect(responses.filter(({ success, answer }) => success && answer.length === 4)).toHaveLength(64)

    const after = await own.stats()
    const repeated = Number(/(\d+) model calls? (?:was|were) made again/.exec(second.stderr())?.[1] ?? 0)
    expect(stored).toBeGreaterThan(0)
    // Every stored answer was used again: what was paid in all is what had to be, and what was in flight.
    expect(after.succeeded).toBeLessThanOrEqual(CALLS + (paid - stored) + 64)
    expect(repeated).toBeGreaterThan(0)
    expect(repeated).toBeLessThanOrEqual(64)
    const paidTwice = Object.values(after.paidTwice).length
    expect(paidTwice).toBeLessThanOrEqual(paid - stored)
    // A call is on record before it is made, so each that was paid twice is counted.
    expect(paidTwice).toBeLessThanOrEqual(repeated)
    // An answer that was used again counts once.
    using file = RunFile.open('paying', { store })
    expect(file.spent()).toEqual(totalUsage(file.responses()))
  },
)

function countOf(store: string, rows: string): number {
  using db = openForReading(join(store, 'store.sqlite'))
  return (db.prepare(`SELECT count(*) AS n FROM ${rows}`).get() as { n: number }).n
}

test('tasks whose worker dies get the answers that they had', { timeout: 120_000 }, async () => {
  const names = Array.from({ length: 6 }, (_, n) => `${n} neighbour`)
  // A second turn has the answer of the first one, which is stored by then.
  const doomed = killer.task({ url: server.url, text: 'neighbour, turn 1', count: names.length })
  let told: RunProgress | undefined
  const responses = await Runners.runTask([doomed, ...names.map((name) => turns.task({ name, turns: 4 }))], {
    ...{ store: storeForTest(), workerNum: 1, concurrency: 16, progress: (now) => void (told = now) },
    models: { m: { baseURL: server.baseURL, model: 'text+latency:300', requestsPerMinute: 100_000 } },
  })
  expect(told!.usage).toEqual(totalUsage(responses.values()))
  const [killed, ...others] = [...responses.values()]
  expect(killed).toMatchObject({ status: 'crashed' })
  for (const response of others) expect(response).toMatchObject({ success: true, attempts: 1 })
  for (const name of names) expect(await server.requests({ body: `${name}, turn 0` })).toHaveLength(1)
})

test.each(['driver', 'direct'])(
  'calls that waited for their turn when a worker died are not said to be made again, via %s',
  { timeout: 120_000 },
  async (via) => {
    const store = storeForTest()
    const driver = start(store, via, { driver: CRASHING })
    expect([await driver.exited, driver.stderr().match(/error/i)]).toEqual([0, null])
    const responses = JSON.parse(driver.stdout()) as { success: boolean }[]
    expect(responses.filter(({ success }) => success)).toHaveLength(24)
    // Two were under way each time, and up to 22 waited: the worker dies until it is known whose fault it is. How often
    // depends on what is done by then.
    const deaths = countOf(store, 'workers WHERE lost IS NOT NULL')
    expect(deaths).toBeGreaterThan(0)
    const repeated = Number(/(\d+) model calls? (?:was|were) made again/.exec(driver.stderr())?.[1])
    expect(repeated).toBeGreaterThan(0)
    expect(repeated).toBeLessThanOrEqual(2 * deaths)
  },
)
