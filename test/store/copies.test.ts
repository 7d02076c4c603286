import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { Runners, type TaskLike } from 'manyworlds'
import { RunFile } from 'manyworlds/runs'
import { afterAll, describe, expect, it } from 'vitest'
import { TABLES as COPIED } from '../../src/store/copy-run.ts'
import { migrate } from '../../src/store/migrations.ts'
import { TABLES as REMOVED_TABLES } from '../../src/store/remove-run.ts'
import { asker } from '../agents/askers.ts'
import { echo } from '../agents/basics.ts'
import { chat, ledger, odd, parent } from '../agents/ledger.ts'
import { recorder } from '../agents/recorders.ts'
import { manyworlds } from '../cli/manyworlds.ts'
import { runScript } from '../support/run-script.ts'
import { itMounts, ownDisk } from './own-disk.ts'
import { changed, query, storeFolder } from './store-folder.ts'

afterAll(() => Runners.shutdown())

const VIEWS = 'run sessions agents workers tasks responses attempts starts steps logs answers blobs'.split(' ')
/** Numbers that a row has in one store only. */
const OWN = { agents: 'agent', workers: 'worker', starts: 'start', steps: 'start', blobs: 'blob' }

/** All that the views say of a run. */
const everything = (file: string, runId: string) =>
  Object.fromEntries(
    VIEWS.map((view) => [
      view,
      query(file, `SELECT * FROM ${view} WHERE run_id = ?`, runId).map((row) => {
        const { [OWN[view as keyof typeof OWN]]: _, ...rest } = row
        return rest
      }),
    ]),
  )

const commandsIn = (store: string) => {
  const options = { cwd: store, env: { MANYWORLDS_STORE: store } }
  return async (...words: string[]) => {
    const { code, stderr } = await manyworlds(words, options)
    return code === 0 ? 'done' : stderr
  }
}

// Cached answers belong to no run, and trainings have runs.
it('every table of the store but those of the cache and of trainings is copied and removed with its run', () => {
  using db = new DatabaseSync(':memory:')
  migrate(db, 0)
  const tables = db
    .prepare(
      `SELECT name FROM sqlite_schema WHERE type = 'table'
       AND name NOT IN ('_run', '_cache', '_trainings', '_plans', '_updates', '_versions', '_evals')`,
    )
    .all()
  const names = tables.map(({ name }) => String(name)).toSorted()
  expect([...COPIED.map(({ table }) => table), '_steps'].toSorted()).toEqual(names)
  expect([...REMOVED_TABLES.map(([table]) => table), '_steps'].toSorted()).toEqual(names)
  for (const { table, keys, values } of COPIED) {
    // Values that may be numbers of blobs have no type.
    const columns = db.prepare(`SELECT name, type FROM pragma_table_info('${table}')`).all()
    expect(values.toSorted(), table).toEqual(
      columns.flatMap(({ name, type }) => (type === '' ? [String(name)] : [])).toSorted(),
    )
    expect(columns.map(({ name }) => name)).toEqual(expect.arrayContaining([...keys]))
  }
})

describe('a run that is copied into a file, and from there into another store', () => {
  it('is the same: retries, sub-tasks, answers that count, attempts that do not', { timeout: 60_000 }, async () => {
    const { store, ledger: path, file } = storeFolder()
    const tasks: TaskLike[] = [
      ledger.task({ ledger: path, until: 2 }, { id: 'second-time', maxAttempts: 2 }),
      ledger.task({ ledger: path, until: 9 }, { id: 'never' }),
      parent.task({ ledger: path }, { id: 'parent', groupId: 'g' }),
      asker.task({ service: 'bill', question: { text: 'q'.repeat(5000) } }, { id: 'asks' }),
      chat.task({ turns: 60, seed: 1 }, { id: 'chat' }),
      odd.task({ at: new Date(7) }, { id: 'odd' }),
      echo.task({ text: 'x'.repeat(9000), same: 'y'.repeat(3000) }, { id: 'large' }),
    ]
    const services = { bill: { durable: true, answer: async () => ({ paid: 'z'.repeat(6000) }) } }
    const config = { seed: 1, backoffMs: 1, services }
    for (const runId of ['first', 'other']) await Runners.runTask(echo.task(runId), { store, runId })
    await Runners.runTask(tasks, { ...config, store, runId: 'r' })
    await Runners.runTask(tasks, { ...config, store, resume: 'r', retryFailed: true })
    const before = everything(file('r'), 'r')
    expect(before.attempts!.map(({ role }) => role)).toEqual(expect.arrayContaining(['final', 'retried', 'superseded']))
    expect(before.answers).toHaveLength(1)

    const mail = join(store, 'mail.sqlite')
    expect(await commandsIn(store)('export-run', 'r', mail)).toBe('done')
    expect(everything(mail, 'r')).toEqual(before)
    const other = storeFolder()
    const there = commandsIn(other.store)
    await Runners.runTask(recorder.task({ steps: 3 }), { store: other.store, runId: 'first' })
    expect(await there('import-run', mail)).toBe('done')
    expect(everything(other.file('r'), 'r')).toEqual(before)
    using here = RunFile.open('r', { store })
    using copy = RunFile.open('r', { store: other.store })
    for (const { id } of here.tasks()) {
      const { response: one, ...task } = here.task(id)!
      const { response: same, ...copied } = copy.task(id)!
      expect(copied).toEqual(task)
      expect({ ...same, trajectory: same?.trajectory }).toEqual({ ...one, trajectory: one?.trajectory })
    }
    const resumed = await Runners.runTask(tasks, { ...config, store: other.store, resume: 'r' })
    expect([...resumed.values()].every(({ restored }) => restored)).toBe(true)
  })

  it('is as it was at one moment, if it is going on', { timeout: 120_000 }, async () => {
    const { store } = storeFolder()
    const records = Array.from({ length: 1500 }, (_, i) => recorder.task({ steps: 6, chars: 6000 }, { id: `t${i}` }))
    // However fast the others are, the run goes on until there is a copy of a part of it.
    const hasPart = Promise.withResolvers<void>()
    const services = { part: () => hasPart.promise }
    const tasks: TaskLike[] = [...records, asker.task({ service: 'part' }, { id: 'last' })]
    const command = commandsIn(store)
    let isOver = false
    const config = { store, runId: 'r', workerNum: 2, services }
    const running = Runners.runTask(tasks, config).finally(() => (isOver = true))
    const copies: string[] = []
    while (!isOver) {
      const copy = join(store, `copy${copies.length}.sqlite`)
      // Before its first rows there is no run yet.
      if ((await command('export-run', 'r', copy)) !== 'done') continue
      copies.push(copy)
      using run = RunFile.open(copy)
      if (run.overview().counts.success > 0) hasPart.resolve()
    }
    await running
    let partial = 0
    for (const copy of copies) {
      using run = RunFile.open(copy)
      const { counts, status } = run.overview()
      let read = 0
      for (const { id, trajectory } of run.responses()) if (trajectory.length === 6 || id === 'last') read++
      expect(read).toBe(counts.success)
      if (read === 0 || read === 1501) continue
      partial++
      // Its driver lives, but does not have the copy.
      expect(status).toBe('died')
    }
    expect(partial).toBeGreaterThan(0)
    const resumed = await Runners.runTask(tasks, { store: copies[0]!, resume: 'r', services })
    expect([...resumed.values()].filter(({ success }) => success)).toHaveLength(1501)
  })

  it('goes on there after its driver was killed, with the answers that were given', { timeout: 60_000 }, async () => {
    const { store, ledger: bills, file } = storeFolder()
    const killed = await runScript('store/billed-run.ts', { args: [store, bills, '12', '3'] })
    expect(killed.code).toBe(null)
    const answered = query(file('r'), 'SELECT count(*) AS n FROM answers')[0]!.n
    expect(answered).toBeGreaterThan(0)
    const mail = join(store, 'mail.sqlite')
    const other = storeFolder()
    expect(await commandsIn(store)('export-run', 'r', mail)).toBe('done')
    expect(await commandsIn(other.store)('import-run', mail)).toBe('done')
    expect(everything(other.file('r'), 'r')).toEqual(everything(file('r'), 'r'))
    const asked = readFileSync(bills, 'utf8').split('\n').length - 1
    const resumed = await runScript('store/billed-run.ts', { args: [other.store, bills, '0', '0'] })
    expect(resumed.code, resumed.stderr).toBe(0)
    // 50 questions, of which these were answered.
    expect(readFileSync(bills, 'utf8').split('\n').length - 1).toBe(asked + 50 - Number(answered))
  })
})

describe('a copy that cannot be made', () => {
  itMounts('leaves nothing on a full disk', async () => {
    const { store } = storeFolder()
    await Runners.runTask(recorder.task({ steps: 200, chars: 60_000 }), { store, runId: 'r' })
    const mail = join(store, 'mail.sqlite')
    expect(await commandsIn(store)('export-run', 'r', mail)).toBe('done')
    const { path: disk } = ownDisk('size=4m')
    const full = expect.stringMatching(
      /^manyworlds: the disk is full: run '\w+' was not copied to .* \[STORE_FULL\]\n$/,
    )
    expect(await commandsIn(store)('export-run', 'r', join(disk, 'copy.sqlite'))).toEqual(full)
    expect(readdirSync(disk)).toEqual([])
    expect(await commandsIn(disk)('import-run', mail)).toEqual(full)
    expect(readdirSync(disk)).toEqual(['store.sqlite'])
    expect(RunFile.list({ store: disk })).toEqual([])
  })

  it.each([
    ['a task of another run', 'UPDATE _attempts SET task = task + 2147483648'],
    ['a worker that is none', `UPDATE _attempts SET worker = 'x'`],
    ['a blob of another run', 'UPDATE _attempts SET answer = 99999999999'],
    ['a start that is none', 'UPDATE _attempts SET start = 1.5'],
  ])('names the damaged file: %s', async (_what, sql) => {
    const { store, own } = storeFolder()
    await Runners.runTask(recorder.task({ steps: 3 }), { store: own('r'), runId: 'r' })
    changed(own('r'), sql)
    const said = await commandsIn(store)('import-run', own('r'))
    expect(said).toContain(`${own('r')} is damaged`)
    expect(said).toMatch(/^manyworlds: [^\n]* \[STORE_CORRUPT\]\n$/)
    expect(query(join(store, 'store.sqlite'), 'SELECT run_id FROM run')).toEqual([])
  })
})
