import { existsSync, mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest'
import { openForReading } from '../../dist/store/open-for-reading.js'
import { seeded } from '../../src/random.ts'
import { type ModelServer, startModelServer } from '../models/scripted-server.ts'
import { SEED, share } from '../support/storm.ts'
import { startDriver } from './start-driver.ts'

const SCRIPT = fileURLToPath(new URL('drivers/train-prompts.ts', import.meta.url))

const LATENCY_MS = 30

let server: ModelServer
beforeAll(async () => {
  // Slow enough that calls are under way when the driver is killed.
  server = await startModelServer({ latencyMs: LATENCY_MS })
})
afterAll(() => server.close())

const newStore = () => {
  const path = mkdtempSync(join(tmpdir(), 'mw-prompts-'))
  onTestFinished(() => rmSync(path, { recursive: true, force: true }))
  return path
}

interface Line {
  readonly new?: string
  readonly epoch?: number
  readonly digest?: string
  readonly test?: unknown
}

function start(store: string) {
  const driver = startDriver<Line>([SCRIPT, store, server.baseURL])
  const { child, exited, lines } = driver
  /** Resolves when so many things were new, or it has ended. */
  const saw = (count: number) =>
    Promise.race([
      exited,
      new Promise<void>((resolve) => {
        child.stdout.on('data', () => lines().filter((line) => line.new).length >= count && resolve())
      }),
    ])
  return { ...driver, saw }
}

/** What is in the store. */
function stored(store: string) {
  const db = openForReading(join(store, 'store.sqlite'))
  try {
    const all = (sql: string) =>
      db
        .prepare(sql)
        .all()
        .map((row) => Object.values(row).join(' '))
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

/**
 * How often a model was asked, and how many of its answers are stored. An answer is stored before its task gets it, so a
 * killed driver may leave one whose task has no response yet.
 */
async function paid(store: string) {
  const db = openForReading(join(store, 'store.sqlite'))
  const stored = (isReflection: boolean) =>
    db.prepare(`SELECT count(*) AS n FROM answers WHERE (run_id GLOB '*.reflect') = ?`).get(Number(isReflection))!
      .n as number
  const of = async (model: string, isReflection: boolean) => ({
    asked: (await server.requests({ model })).length,
    stored: stored(isReflection),
  })
  try {
    // When this is answered, whatever the killed driver sent before has been counted.
    await server.stats()
    return { reflections: await of('reflector', true), episodes: await of('student', false) }
  } finally {
    db.close()
  }
}

test(`killed at any moment and resumed, it comes to the same texts; no episode is collected twice, no reflection paid twice (seed ${SEED})`, {
  timeout: 600_000,
}, async () => {
  const undisturbed = newStore()
  const whole = start(undisturbed)
  expect(await whole.exited, whole.stderr()).toBe(0)
  const news = whole.lines().filter((line) => line.new).length
  expect(whole.lines().at(-1)!.test).not.toBeNull()
  const expected = stored(undisturbed)
  expect(expected.runs.filter((id) => id.endsWith('.reflect')).length).toBeGreaterThan(3)
  const earlier = await paid(undisturbed)
  expect(earlier.episodes.stored).toBe(Number(expected.responses[0]) - earlier.reflections.stored)
  expect(earlier.reflections.asked).toBe(earlier.reflections.stored)
  expect(earlier.episodes.asked).toBe(earlier.episodes.stored)

  const random = seeded(SEED)
  const kills = share(3, 8)
  const store = newStore()
  const killedAt = new Set<string>()
  let lost = { reflections: 0, episodes: 0 }
  /** Of each session, what it asked for again: only what was under way when the one before was killed. */
  const look = async () => {
    const { reflections, episodes } = await paid(store)
    const now = {
      reflections: reflections.asked - earlier.reflections.asked - reflections.stored,
      episodes: episodes.asked - earlier.episodes.asked - episodes.stored,
    }
    const added = { reflections: now.reflections - lost.reflections, episodes: now.episodes - lost.episodes }
    lost = now
    return added
  }
  for (let kill = 0; kill < kills; kill++) {
    const driver = start(store)
    // After so many things that are new, which makes progress, and then at any moment.
    await driver.saw(1 + Math.floor((random() * 2 * news) / (kills + 1)))
    await Promise.race([driver.exited, sleep(random() * 3 * LATENCY_MS)])
    driver.child.kill('SIGKILL')
    await driver.exited
    if (!existsSync(join(store, 'store.sqlite'))) continue
    killedAt.add(JSON.stringify([stored(store).runs, stored(store).curve.length]))
    const { reflections, episodes } = await look()
    expect([0, 1]).toContain(reflections)
    expect(episodes).toBeGreaterThanOrEqual(0)
    expect(episodes).toBeLessThanOrEqual(MOST_AT_ONCE)
  }
  const last = start(store)
  expect(await last.exited, last.stderr()).toBe(0)
  expect(stored(store)).toEqual(expected)
  // It was really interrupted, in the middle of different runs.
  expect(killedAt.size).toBeGreaterThan(kills / 3)
  // Nothing that had an answer was asked again.
  expect(await look()).toEqual({ reflections: 0, episodes: 0 })
  expect(readdirSync(store).filter((name) => name.includes('owner'))).toEqual([])
})

/** Episodes of the largest run: those of a validation. */
const MOST_AT_ONCE = 12
