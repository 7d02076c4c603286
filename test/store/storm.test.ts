import { type ChildProcess, spawn } from 'node:child_process'
import { existsSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { expect, it, onTestFinished } from 'vitest'
import { seeded } from '../../src/random.ts'
import { SEED, share } from '../support/storm.ts'
import { query, storeFolder } from './store-folder.ts'

const TASKS = share(400, 2000)
const KILLS = share(8, 50)
/** All that is left waits for the end of the storm. */
const STALLED_MS = 3000

it(`a storm of ${KILLS} kill -9 loses nothing, and runs nothing again that was committed (seed ${SEED})`, {
  timeout: 480_000,
}, async () => {
  const { store, ledger, file } = storeFolder()
  const random = seeded(SEED)
  let session = 0
  let kills = { driver: 0, worker: 0 }
  let committed = new Set<string>()
  const problems: string[] = []
  let output = ''
  for (;;) {
    session++
    const driver = startDriver(store, ledger, session)
    driver.stdout!.on('data', (text) => (output += text))
    let alive = true
    const ended = new Promise<number | null>((done) => driver.once('close', done)).finally(() => (alive = false))
    while (alive && kills.driver + kills.worker < KILLS) {
      await progress(ledger, 15 + Math.floor(random() * 40), () => alive)
      await sleep(random() * 15)
      if (!alive) break
      const workers = childrenOf(driver.pid!)
      if (random() < 0.5 || workers.length === 0) {
        kills = { ...kills, driver: kills.driver + 1 }
        driver.kill('SIGKILL')
        break
      }
      kills = { ...kills, worker: kills.worker + 1 }
      kill(workers[Math.floor(random() * workers.length)]!)
    }
    if (kills.driver + kills.worker === KILLS) writeFileSync(`${ledger}-end`, '')
    const code = await ended
    for (const id of ranIn(ledger, session)) if (committed.has(id)) problems.push(`session ${session} ran ${id} again`)
    committed = committedIn(file('storm'))
    if (code !== null) {
      expect(code, output).toBe(0)
      break
    }
  }
  console.log(`storm: ${kills.driver} drivers and ${kills.worker} workers killed, ${session} sessions`)
  expect(problems).toEqual([])
  expect(kills.driver + kills.worker).toBe(KILLS)
  expect(JSON.parse(output)).toEqual({ answered: TASKS, wrong: [] })
  const finals = query(file('storm'), `SELECT id, count(*) AS n FROM responses WHERE status = 'success' GROUP BY id`)
  expect(finals).toHaveLength(TASKS)
  expect(finals.filter(({ n }) => n !== 1)).toEqual([])
  // Those who were killed had no time to say how they ended.
  const endings = query(file('storm'), 'SELECT ending FROM sessions ORDER BY epoch DESC').map(({ ending }) => ending)
  expect(endings[0]).toBe('finished')
  expect(new Set(endings.slice(1))).toEqual(new Set([null]))
  expect(query(file('storm'), 'PRAGMA integrity_check')).toEqual([{ integrity_check: 'ok' }])
})

function startDriver(store: string, ledger: string, session: number): ChildProcess {
  const script = resolve(import.meta.dirname, '../scripts/store/storm.ts')
  const driver = spawn(process.execPath, [script, store, ledger, String(session), String(TASKS)], {
    stdio: ['ignore', 'pipe', 'inherit'],
    env: { ...process.env, VITEST: undefined },
  })
  onTestFinished(() => void driver.kill('SIGKILL'))
  return driver
}

/** Waits until so many more tasks have started. */
async function progress(ledger: string, lines: number, alive: () => boolean): Promise<void> {
  const from = size(ledger)
  // A line is a session, an id and a line feed: eight characters, more or less.
  let [last, grewAt] = [from, Infinity]
  while (alive() && last - from < lines * 8 && Date.now() - grewAt < STALLED_MS) {
    await sleep(3)
    if (size(ledger) > last) [last, grewAt] = [size(ledger), Date.now()]
  }
}

const size = (path: string) => statSync(path, { throwIfNoEntry: false })?.size ?? 0

function ranIn(ledger: string, session: number): string[] {
  if (!existsSync(ledger)) return []
  const prefix = `${session} `
  return readFileSync(ledger, 'utf8')
    .split('\n')
    .filter((line) => line.startsWith(prefix))
    .map((line) => line.slice(prefix.length))
}

function committedIn(file: string): Set<string> {
  // A driver that was killed while it made the file has committed nothing.
  if (!existsSync(file) || query(file, `SELECT 1 FROM sqlite_schema WHERE name = 'responses'`).length === 0)
    return new Set()
  return new Set(query(file, 'SELECT id FROM responses').map(({ id }) => String(id)))
}

function childrenOf(pid: number): number[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .map(Number)
    .filter((child) => {
      try {
        return (
          readFileSync(join('/proc', String(child), 'stat'), 'utf8')
            .replace(/^.*\) /s, '')
            .split(' ')[1] === String(pid)
        )
      } catch {
        return false
      }
    })
}

function kill(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL')
  } catch {
    // It had gone already.
  }
}
