import { mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { ManyworldsError, Runners } from 'manyworlds'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { seeded } from '../../src/random.ts'
import { echo } from '../agents/basics.ts'
import { recorder } from '../agents/recorders.ts'
import { changeFile, columnsOf, says, spoil, WRONG } from './spoil.ts'

/** What stands in a store of many runs may have come from anybody, too. */

const CASES = 120
const seed = Number(process.env.HOSTILE_SEED ?? Math.floor(Math.random() * 2 ** 31))
const tasks = [echo.task({ text: 'x'.repeat(5000) }, { id: 'e' }), recorder.task({ steps: 3 }, { id: 's' })]
let store: string
let path: string
let sound: Buffer

beforeAll(async () => {
  store = mkdtempSync(join(tmpdir(), 'manyworlds-store-'))
  path = join(store, 'store.sqlite')
  for (const runId of ['r', 'other', 'third']) await Runners.runTask(tasks, { store: path, runId, seed: 1 })
  sound = readFileSync(wholeCopy())
})
afterAll(async () => {
  await Runners.shutdown()
  rmSync(store, { recursive: true, force: true })
})

/** Without a log beside it. */
function wholeCopy(): string {
  const copy = join(store, 'copy')
  using db = new DatabaseSync(path)
  db.exec(`VACUUM INTO '${copy}'`)
  return copy
}

const COMMANDS = [
  ['runs'],
  ['show', 'r', '--full'],
  ['show', 'other', '--json'],
  ['show', 'r', 's', '--json'],
  ['tail', 'r', '--from-start', '--steps'],
  ['rm', 'r', '--dry-run'],
  ['rm', '--older-than', '1d', '--dry-run'],
]

it(`a store with something wrong in it is shown, added to, or refused in one clear line (HOSTILE_SEED=${seed})`, async () => {
  const random = seeded(seed)
  const one = <T>(list: readonly T[]) => list[Math.floor(random() * list.length)]!
  const columns = columnsOf(join(store, 'copy'))
  const outcomes = new Map<string, number>()
  for (let i = 0; i < CASES; i++) {
    // Another file each time: one that is replaced under a driver is another matter.
    const folder = join(store, `case${i}`)
    const at = join(folder, 'store.sqlite')
    mkdirSync(folder)
    const { table, column } = one(columns)
    const value = one(WRONG)
    if (!spoil((change) => changeFile(at, sound, change), table, column, value)) continue
    const what = `${table}.${column} = ${String(value)}`
    for (const words of [one(COMMANDS), one(COMMANDS)]) {
      const { code, stderr } = await says(...words, '--dir', folder)
      const told = `${what}: ${words.join(' ')}: ${stderr}`
      expect([0, 1, 2], told).toContain(code)
      // `runs` lists what it cannot read, too.
      if (code !== 0 && words[0] !== 'runs')
        expect(stderr, told).toMatch(/^manyworlds: [^\n]* \[(STORE_CORRUPT|RUN_NOT_FOUND|TASK_NOT_FOUND)\]\n$/)
    }
    for (const config of [{ resume: 'r' }, { runId: 'new', keep: { runs: 2 } }] as const) {
      const outcome = await Runners.runTask(tasks, { store: folder, seed: 1, workerNum: 1, ...config }).then(
        (responses) => `done ${responses.size}`,
        (error: unknown) => {
          if (!ManyworldsError.is(error)) throw new Error(`${what}: no clear error`, { cause: error })
          expect(error.message.split('\n'), what).toHaveLength(1)
          return error.code
        },
      )
      expect(['done 2', 'STORE_CORRUPT', 'RESUME_MISMATCH', 'RUN_NOT_FOUND', 'STORE_FULL'], what).toContain(outcome)
      outcomes.set(outcome, (outcomes.get(outcome) ?? 0) + 1)
    }
  }
  expect(outcomes.get('done 2')).toBeGreaterThan(10)
}, 300_000)
