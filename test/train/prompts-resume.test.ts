import { spawn } from 'node:child_process'
import { mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest'
import { openForReading } from '../../dist/store/open-for-reading.js'
import { type ModelServer, startModelServer } from '../models/scripted-server.ts'

const SCRIPT = fileURLToPath(new URL('drivers/train-prompts.ts', import.meta.url))

let server: ModelServer
beforeAll(async () => {
  // Slow enough that calls are under way when the driver is killed.
  server = await startModelServer({ latencyMs: 15 })
})
afterAll(() => server.close())

const newStore = () => {
  const path = mkdtempSync(join(tmpdir(), 'mw-prompts-'))
  onTestFinished(() => rmSync(path, { recursive: true, force: true }))
  return path
}

function start(store: string) {
  const child = spawn(process.execPath, [SCRIPT, store, server.baseURL], { stdio: ['ignore', 'pipe', 'pipe'] })
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
  const lines = (): { epoch?: number; digest?: string; test?: unknown; ms?: number }[] =>
    stdout
      .split('\n')
      .slice(0, -1)
      .map((line) => JSON.parse(line))
  return { child, exited, lines, stderr: () => stderr }
}

/** What is in the store. */
function stored(store: string) {
  const db = openForReading(join(store, 'store.sqlite'))
  try {
    const all = (sql: string) => db.prepare(sql).all().map((row) => Object.values(row).join(' '))
    return {
      curve: all('SELECT number, curve_sha FROM _updates ORDER BY number'),
      plans: all('SELECT number, epoch, version, seed, tasks FROM _plans ORDER BY number'),
      versions: all('SELECT version, sha256, kept FROM _versions ORDER BY version'),
      evaluations: all('SELECT version, split, summary FROM _evals ORDER BY version, split'),
      runs: all('SELECT run_id FROM _run ORDER BY run_id'),
      episodes: all('SELECT count(*) FROM _tasks WHERE place IS NOT NULL'),
      responses: all('SELECT count(*) FROM _attempts WHERE role = 0'),
      twice: all('SELECT task FROM _attempts WHERE role = 0 GROUP BY task HAVING count(*) > 1'),
    }
  } finally {
    db.close()
  }
}

const asked = async (model: string) => (await server.requests({ model })).filter(({ succeeded }) => succeeded).length

test('killed at any moment and resumed, it comes to the same texts; no episode is collected twice, no reflection paid twice', {
  timeout: 600_000,
}, async () => {
  const undisturbed = newStore()
  const whole = start(undisturbed)
  expect(await whole.exited, whole.stderr()).toBe(0)
  const wholeMs = whole.lines().at(-1)!.ms!
  expect(whole.lines().at(-1)!.test).not.toBeNull()
  const expected = stored(undisturbed)
  expect(expected.runs.filter((id) => id.endsWith('.reflect')).length).toBeGreaterThan(3)
  const before = { student: await asked('student'), reflector: await asked('reflector') }

  const kills = Number(process.env.KILLS ?? 8)
  const store = newStore()
  for (let kill = 0; kill < kills; kill++) {
    const driver = start(store)
    await expect.poll(driver.lines, { timeout: 60_000 }).not.toEqual([])
    await Promise.race([driver.exited, sleep(Math.random() * 0.3 * wholeMs)])
    driver.child.kill('SIGKILL')
    await driver.exited
  }
  const last = start(store)
  expect(await last.exited, last.stderr()).toBe(0)
  expect(stored(store)).toEqual(expected)
  const after = { student: await asked('student'), reflector: await asked('reflector') }
  // Only what was under way when the driver was killed may have been asked again.
  expect(after.reflector - before.reflector - before.reflector).toBeLessThanOrEqual(kills)
  expect(after.student - 2 * before.student).toBeLessThanOrEqual(kills * CALLS_AT_ONCE)
  expect(readdirSync(store).filter((name) => name.includes('owner'))).toEqual([])
})

/** Of one worker. */
const CALLS_AT_ONCE = 64
