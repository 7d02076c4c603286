import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { openForReading } from '../../store/open-for-reading.ts'
import { type Case, type EngineReference, skipWithoutReference } from '../case.ts'

/** Durable answers, and drivers that die. */
export const keptAnswerCases: Case[] = [
  {
    name: 'durable answers survive a driver that is killed between commit and delivery: the resumed run gets them, and the service is not called again',
    async run({ reference }) {
      if (!reference) return skipWithoutReference('in which the driver is killed and its run resumed')
      const folder = mkdtempSync(join(tmpdir(), 'manyworlds-kit-'))
      const ledger = join(folder, 'ledger')
      const drive = (killAt: number) => runBilledDriver(reference, [folder, ledger, String(killAt)])
      const lines = () => readFileSync(ledger, 'utf8').trimEnd().split('\n')
      const killAt = 1 + Math.floor(Math.random() * 20)
      assert.equal(await drive(killAt), null, 'the driver was not killed')
      const before = answersIn(folder)
      const asked = lines().length
      assert.ok(before.size > 0 && before.size < 24, `${before.size} answers were committed`)
      assert.equal(await drive(0), 0)
      const after = answersIn(folder)
      assert.equal(after.size, 24)
      assert.equal(
        lines().length - asked,
        24 - before.size,
        `an answered question was asked again (killed at ${killAt})`,
      )
      assert.deepEqual(
        lines().filter((line) => line.includes('before')),
        [],
      )
      for (const [question, answer] of before) assert.equal(after.get(question), answer)
      rmSync(folder, { recursive: true })
    },
  },
]

/** Runs a separate driver; resolves to its exit code. */
function runBilledDriver({ module, export: name }: EngineReference, args: readonly string[]): Promise<number | null> {
  const extension = import.meta.url.endsWith('.ts') ? '.ts' : '.js'
  const script = fileURLToPath(new URL(`../billed-driver${extension}`, import.meta.url))
  const driver = spawn(process.execPath, [script, String(module), name, ...args], {
    stdio: ['ignore', 'ignore', 'inherit'],
  })
  return new Promise((resolve) => driver.once('close', (code) => resolve(code)))
}

/** The answers in the store, by question. */
function answersIn(store: string): Map<string, string> {
  using db = openForReading(join(store, 'store.sqlite'))
  const rows = db.prepare('SELECT value FROM _answers').all() as { value: string }[]
  return new Map(rows.map(({ value }) => (JSON.parse(value) as string).split(': ') as [string, string]))
}
