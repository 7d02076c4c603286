import { mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { ManyworldsError, Runners } from 'manyworlds'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { seeded } from '../../src/random.ts'
import { echo } from '../agents/basics.ts'
import { recorder } from '../agents/recorders.ts'
import { SEED, share } from '../support/storm.ts'
import { changeFile, columnsOf, says, spoil, WRONG } from './spoil.ts'

/** What stands in a store of many runs may have come from anybody, too. */

const CASES = share(24, 240)
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

const SPAN = 2 ** 31
const inFirst = (key: string) => `${key} < ${2 * SPAN}`

/** What belongs to one run stands in another, or in none. The first run is number 1. */
const CROSSED: Readonly<Record<string, string>> = {
  'attempts of tasks of another run': `UPDATE _attempts SET task = task + ${SPAN} WHERE ${inFirst('seq')}`,
  'tasks below a task of another run': `UPDATE _tasks SET parent = parent + ${SPAN} + 1 WHERE ${inFirst('task')}`,
  'tasks below each other': 'UPDATE _tasks SET parent = task',
  'tasks of an agent of another run': `UPDATE _tasks SET agent = agent + ${SPAN} WHERE ${inFirst('task')}`,
  'tasks without an agent': 'DELETE FROM _agents',
  'workers of another run': `UPDATE _attempts SET worker = worker + ${SPAN} WHERE ${inFirst('seq')}`,
  'starts of tasks of another run': `UPDATE _starts SET task = task + ${SPAN} WHERE ${inFirst('task')}`,
  'steps of another start': 'UPDATE _attempts SET start = start + 1 WHERE start IS NOT NULL',
  'a start beyond all keys': `UPDATE _starts SET start = ${2 ** 34} WHERE start = 1`,
  'a start that no number can hold': 'UPDATE _starts SET start = 9223372036854775000 WHERE start = 1',
  'steps without a start': 'DELETE FROM _starts',
  'steps that run into the next start': `UPDATE _steps SET key = key + ${2 ** 20} - 1 WHERE key >= ${3 * 2 ** 20}`,
  'blobs of another run': `UPDATE _attempts SET answer = answer + ${SPAN} WHERE typeof(answer) = 'integer'`,
  'blobs that are not there': 'DELETE FROM _blobs',
  'tasks that are not there': 'DELETE FROM _tasks',
  'no sessions': 'DELETE FROM _sessions',
  'a session that is not there': 'UPDATE _run SET epoch = 5',
  'a session beyond the keys of its run': `UPDATE _run SET epoch = ${SPAN}`,
  'sessions of another run': `UPDATE _sessions SET epoch = epoch + ${5 * SPAN}`,
  'a run with the number of none': 'UPDATE _run SET run = 99 WHERE run = 1',
  'a run with the number of a file': 'UPDATE _run SET run = 0 WHERE run = 1',
  'a run with a negative number': 'UPDATE _run SET run = -1 WHERE run = 1',
  'a run with the last number': `UPDATE _run SET run = ${2 ** 22 - 1} WHERE run = 1`,
  'a run with a number that is too large': `UPDATE _run SET run = ${2 ** 22} WHERE run = 1`,
  'a run with a number that is far too large': 'UPDATE _run SET run = 4611686018427387904 WHERE run = 1',
  'tasks that no number can hold': 'UPDATE _tasks SET task = 4611686018427387904 + task',
  'an owner that is a path': `UPDATE _sessions SET ended_at = NULL, owner = '/../../../../../dev/zero'`,
  'an owner with a NUL': `UPDATE _sessions SET ended_at = NULL, owner = 'a' || char(0) || 'b'`,
  'a run that is removed, by its name': `UPDATE _run SET run_id = '(removed) 1' WHERE run = 1`,
  'runs of the year 1970': 'UPDATE _run SET created_at = 0',
}

/** What a command, or a run, may come to. */
const CLEAR = /^manyworlds: [^\n]* \[(STORE_CORRUPT|STORE_FULL|RUN_NOT_FOUND|TASK_NOT_FOUND)\]\n$/

it.each(Object.entries(CROSSED))('%s: is shown, or refused in one clear line', async (what, sql) => {
  const folder = join(store, `crossed-${what.replaceAll(' ', '-')}`)
  const at = join(folder, 'store.sqlite')
  mkdirSync(folder)
  changeFile(at, sound, (db) => db.exec(sql))
  const copy = join(folder, 'copy.sqlite')
  for (const words of [...COMMANDS, ['export-run', 'r', copy], ['export-run', 'other', `${copy}.sqlite`]]) {
    const { code, stderr } = await says(...words, '--dir', folder)
    if (code !== 0 && words[0] !== 'runs') expect(stderr, `${what}: ${words.join(' ')}`).toMatch(CLEAR)
  }
  for (const config of [{ resume: 'r' }, { resume: 'other' }, { runId: 'new', keep: { runs: 2 } }] as const) {
    const run = Runners.runTask(tasks, { store: folder, seed: 1, workerNum: 1, ...config })
    const outcome = await run.then(
      (responses) => `done ${responses.size}`,
      (error: unknown) => (ManyworldsError.is(error) ? error.code : String(error)),
    )
    const codes = ['done 2', 'STORE_CORRUPT', 'RESUME_MISMATCH', 'RUN_NOT_FOUND', 'STORE_FULL']
    expect(codes, `${what}: ${JSON.stringify(config)}`).toContain(outcome)
  }
  const other = `${folder}-rm`
  mkdirSync(other)
  changeFile(join(other, 'store.sqlite'), sound, (db) => db.exec(sql))
  const { code, stderr } = await says('rm', 'r', '--yes', '--dir', other)
  if (code !== 0) expect(stderr, what).toMatch(CLEAR)
})

it(`a store with something wrong in it is shown, added to, or refused in one clear line (seed ${SEED})`, async () => {
  const random = seeded(SEED)
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
