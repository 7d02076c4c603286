import { spawn } from 'node:child_process'
import { existsSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { resolve } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { expect, it, onTestFinished } from 'vitest'
import { seeded } from '../../src/random.ts'
import { SEED, share } from '../support/storm.ts'
import { query, storeFolder } from './store-folder.ts'

const KILLS = share(4, 20)
/** All that is left waits for the end of the storm. */
const STALLED_MS = 3000

it(`every step that an observer was told of is in the store, also when the driver is killed (seed ${SEED})`, {
  timeout: 480_000,
}, async () => {
  const { store, ledger, file } = storeFolder()
  const random = seeded(SEED)
  let output = ''
  for (let session = 1; session <= KILLS + 1; session++) {
    const before = sizeOf(ledger)
    if (session > KILLS) writeFileSync(`${ledger}-end`, '')
    const driver = startDriver(store, ledger, session)
    driver.stdout.on('data', (text) => (output += text))
    const ended = new Promise<number | null>((done) => driver.once('close', done))
    if (session <= KILLS) {
      // So many more lines, and then at any moment.
      const enough = before + 20 + random() * 6000
      let [size, grewAt] = [before, Infinity]
      while (driver.exitCode === null && sizeOf(ledger) < enough && Date.now() - grewAt < STALLED_MS) {
        await sleep(3)
        if (sizeOf(ledger) > size) [size, grewAt] = [sizeOf(ledger), Date.now()]
      }
      await sleep(random() * 20)
      driver.kill('SIGKILL')
    }
    const code = await ended
    expect(missing(ledger, file('storm'))).toEqual([])
    expect(code).toBe(session > KILLS ? 0 : null)
  }
  expect(JSON.parse(output)).toEqual({ answered: 200, wrong: 0 })
  expect(query(file('storm'), 'PRAGMA integrity_check')).toEqual([{ integrity_check: 'ok' }])
})

/** What was told, and is not there. */
function missing(ledger: string, file: string): string[] {
  if (!existsSync(ledger)) return []
  const stored = new Set(
    query(
      file,
      `SELECT s.epoch || ' ' || s.id || ' ' || s.attempt || ' ' || x.step AS line FROM starts s JOIN steps x USING (start)`,
    ).map(({ line }) => line),
  )
  // The last line may be half written: it was being told.
  const told = readFileSync(ledger, 'utf8').split('\n').slice(0, -1)
  return told.filter((line) => !stored.has(line))
}

const sizeOf = (path: string) => statSync(path, { throwIfNoEntry: false })?.size ?? 0

function startDriver(store: string, ledger: string, session: number) {
  const script = resolve(import.meta.dirname, '../scripts/store/steps-storm.ts')
  const driver = spawn(process.execPath, [script, store, ledger, String(session)], {
    stdio: ['ignore', 'pipe', 'inherit'],
    env: { ...process.env, VITEST: undefined },
  })
  onTestFinished(() => void driver.kill('SIGKILL'))
  return driver
}
