import { copyFileSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Runners } from 'manyworlds'
import { RunFile, type StoredAttempt } from 'manyworlds/runs'
import { afterAll, describe, expect, it, onTestFinished } from 'vitest'
import { SCHEMA_VERSION } from '../../src/store/schema.ts'
import { manyworlds } from '../cli/manyworlds.ts'
import { runScript } from '../support/run-script.ts'
import { askingTasks, finishedTasks, killedTasks, lateTasks, services } from './fixtures/first-edition.ts'
import { query } from './store-folder.ts'

afterAll(() => Runners.shutdown())

/** A folder with copies of what an earlier version has written (`fixtures/make.ts`); without a name, version 1. */
function oldStore(folder = '') {
  const store = mkdtempSync(join(tmpdir(), 'manyworlds-old-'))
  onTestFinished(() => rmSync(store, { recursive: true, force: true }))
  const fixtures = join(import.meta.dirname, 'fixtures', folder)
  for (const name of readdirSync(fixtures).filter((name) => name.includes('.sqlite')))
    copyFileSync(join(fixtures, name), join(store, name))
  return { store, file: (name: string) => join(store, `${name}.sqlite`) }
}

/** The task that was running when its driver was killed does not take a minute again. */
const shortened = killedTasks.map((task) =>
  task.id === 'running' ? { ...task, timeoutMs: 100 } : task,
) as typeof killedTasks

const RESUMED = ['superseded', 'superseded', 'retried', 'final']

/** The worker of one task was given up, and its answer came after that. */
function expectLate(run: RunFile): void {
  expect(run.overview().counts).toMatchObject({ success: 2 })
  const attempts = ['first', 'second'].map((id) => run.task(id)!.attempts)
  const [once, twice] = attempts.toSorted((a, b) => a.length - b.length) as [StoredAttempt[], StoredAttempt[]]
  expect(once).toMatchObject([{ role: 'final', status: 'success' }])
  expect(twice.map(({ role, status }) => `${role} ${status}`)).toEqual([
    'retried crashed',
    'superseded success',
    'final success',
  ])
  for (const { trajectory } of twice.slice(1)) expect(trajectory).toMatchObject([{ kind: 'note', action: 'begin' }])
}

/** All tasks of a run, with everything that was tried. */
const everythingIn = (run: RunFile) =>
  Array.from(run.tasks(), ({ id }) => {
    const { response, ...task } = run.task(id)!
    return { ...task, response: response && { ...response, trajectory: response.trajectory } }
  })

describe('a file of the first edition', () => {
  it('is listed and shown, and stays as it is', async () => {
    const { store, file } = oldStore()
    const before = readFileSync(file('finished'))
    expect(RunFile.list({ store }).toSorted()).toEqual(['finished', 'killed', 'late', 'resumed'])
    using run = RunFile.open('finished', { store })
    expect(run.overview()).toMatchObject({
      status: 'finished',
      total: 5,
      counts: { success: 4, failed: 1 },
      sessions: 1,
    })
    expect([...run.responses()].map(({ id, status }) => `${id} ${status}`).toSorted()).toEqual([
      'long success',
      'never failed',
      'parent success',
      'second-time success',
      'short success',
    ])
    const short = run.task('short')!
    expect(short).toMatchObject({ info: { groundTruth: 42, groupId: 'g' }, unfinished: [] })
    expect(short.response!.trajectory).toMatchObject(
      [0, 1, 2].map((index) => ({ index, kind: 'note', action: `hello ${index}`, reward: index / 4 })),
    )
    expect(run.task('long')!.response!.trajectory).toHaveLength(20)
    expect(run.task('never')!.attempts.map(({ role }) => role)).toEqual(['retried', 'final'])
    expect(run.task('parent')!.subTaskIds).toHaveLength(2)
    using resumed = RunFile.open('resumed', { store })
    expect(resumed.task('never')!.attempts.map(({ role }) => role)).toEqual(RESUMED)
    using late = RunFile.open('late', { store })
    expectLate(late)
    const shown = await manyworlds(['show', 'finished', 'long', '--full'], {
      cwd: store,
      env: { MANYWORLDS_STORE: store },
    })
    expect(shown.stdout).toContain('20 steps')
    expect(readFileSync(file('finished')).equals(before)).toBe(true)
  })

  it('keeps its views', () => {
    const { file } = oldStore()
    expect(query(file('finished'), `SELECT step, action FROM steps WHERE id = 'short' ORDER BY step`)).toEqual(
      [0, 1, 2].map((step) => ({ step, action: `"hello ${step}"` })),
    )
  })

  it('is resumed in place, with nothing run again', async () => {
    const { store, file } = oldStore()
    const config = { store, resume: 'finished', maxAttempts: 2, backoffMs: 1 }
    const responses = await Runners.runTask(finishedTasks, config)
    expect([...responses.values()].map(({ restored }) => restored)).toEqual([true, true, true, true, true])
    expect(responses.get('long')!.trajectory).toHaveLength(20)
    expect(query(file('finished'), 'PRAGMA user_version')).toEqual([{ user_version: SCHEMA_VERSION }])
    expect(query(file('finished'), `SELECT step, action, kind FROM steps WHERE id = 'short' ORDER BY step`)).toEqual(
      [0, 1, 2].map((step) => ({ step, action: `"hello ${step}"`, kind: 'note' })),
    )
    expect(query(file('finished'), 'SELECT run_id, sessions FROM run')).toEqual([{ run_id: 'finished', sessions: 2 }])
    const again = await Runners.runTask(finishedTasks, { ...config, retryFailed: true })
    expect([...again.values()].filter(({ restored }) => !restored).map(({ id }) => id)).toEqual(['never'])
    using run = RunFile.open('finished', { store })
    expect(run.task('never')!.attempts.at(-1)!.trajectory).toMatchObject([{ kind: 'note', action: 'try' }])
    expect(run.task('never')!.attempts.map(({ role }) => role)).toEqual([
      'superseded',
      'superseded',
      'retried',
      'final',
    ])
  })

  it('that was left by a driver that was killed goes on', async () => {
    const { store, file } = oldStore()
    using before = RunFile.open('killed', { store })
    expect(before.overview().status).toBe('died')
    const responses = await Runners.runTask(shortened, { store, resume: 'killed' })
    expect([...responses.values()]).toMatchObject([
      { id: 'done', restored: true },
      { id: 'running', restored: false, status: 'timeout' },
      { id: 'waiting', restored: false, status: 'success' },
    ])
    expect(query(file('killed'), 'PRAGMA integrity_check')).toEqual([{ integrity_check: 'ok' }])
  })

  it('is imported into a store', { timeout: 120_000 }, async () => {
    const { store, file } = oldStore()
    const folder = mkdtempSync(join(tmpdir(), 'manyworlds-new-'))
    onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
    const options = { cwd: folder, env: { MANYWORLDS_STORE: folder } }
    for (const name of ['finished', 'resumed', 'late', 'killed']) {
      expect(await manyworlds(['import-run', file(name)], options)).toMatchObject({ code: 0 })
      using run = RunFile.open(name, { store })
      using copied = RunFile.open(name, { store: folder })
      expect(everythingIn(copied)).toEqual(everythingIn(run))
    }
    for (const name of ['finished', 'resumed']) {
      const responses = await Runners.runTask(finishedTasks, { store: folder, resume: name, maxAttempts: 2 })
      expect([...responses.values()].every(({ restored }) => restored)).toBe(true)
      expect(responses.get('long')!.trajectory).toHaveLength(20)
    }
    const late = await Runners.runTask(lateTasks, { store: folder, resume: 'late', maxAttempts: 2 })
    expect([...late.values()].every(({ restored }) => restored)).toBe(true)
    const killed = await Runners.runTask(shortened, { store: folder, resume: 'killed' })
    expect([...killed.values()].map(({ restored }) => restored)).toEqual([true, false, false])
  })
})

describe.each([
  ['2', 'second', ['finished', 'resumed', 'late', 'own', 'killed']],
  ['3', 'third', ['finished', 'resumed', 'late', 'own', 'asked', 'killed']],
  ['4', 'fourth', ['finished', 'resumed', 'late', 'own', 'asked', 'killed']],
  ['5', 'fifth', ['finished', 'resumed', 'late', 'own', 'asked', 'killed']],
  ['6', 'sixth', ['finished', 'resumed', 'late', 'own', 'asked', 'killed']],
  ['7', 'seventh', ['finished', 'resumed', 'late', 'own', 'asked', 'killed']],
] as const)('a store of version %s', (version, folder, runs) => {
  it('is listed, shown and exported, and stays as it is', { timeout: 240_000 }, async () => {
    const { store, file } = oldStore(folder)
    const before = [file('store'), file('own')].map((path) => readFileSync(path))
    expect(query(file('store'), 'PRAGMA user_version')).toEqual([{ user_version: Number(version) }])
    expect(RunFile.list({ store }).toSorted()).toEqual([...runs].toSorted())
    for (const name of ['finished', 'own']) {
      using run = RunFile.open(name, { store })
      expect(run.overview()).toMatchObject({ status: 'finished', total: 5, counts: { success: 4, failed: 1 } })
      expect(run.task('long')!.response!.trajectory).toHaveLength(20)
      expect(run.task('long')!.response!.timing.waitedMs).toBe(0)
      expect(run.task('parent')!.subTaskIds).toHaveLength(2)
    }
    using resumed = RunFile.open('resumed', { store })
    expect(resumed.task('never')!.attempts.map(({ role }) => role)).toEqual(RESUMED)
    using late = RunFile.open('late', { store })
    expectLate(late)
    using killed = RunFile.open('killed', { store })
    expect(killed.overview().status).toBe('died')
    expect(killed.task('running')!.unfinished[0]!.trajectory).toMatchObject([{ action: 'begin' }])
    const options = { cwd: store, env: { MANYWORLDS_STORE: store } }
    for (const name of runs) {
      expect((await manyworlds(['show', name, '--json'], options)).code).toBe(0)
      const copy = join(store, 'copies', `${name}.sqlite`)
      expect(await manyworlds(['export-run', name, copy], options)).toMatchObject({ code: 0 })
      using run = RunFile.open(name, { store })
      using copied = RunFile.open(copy)
      expect(everythingIn(copied)).toEqual(everythingIn(run))
      expect(query(copy, 'PRAGMA user_version')).toEqual([{ user_version: SCHEMA_VERSION }])
    }
    expect([file('store'), file('own')].map((path) => readFileSync(path))).toEqual(before)
  })

  it('is migrated by the first run that writes to it, with nothing run again', async () => {
    const { store, file } = oldStore(folder)
    const config = { store, maxAttempts: 2, backoffMs: 1 }
    for (const [name, tasks] of [
      ['finished', finishedTasks],
      ['resumed', finishedTasks],
      ['late', lateTasks],
      ['own', finishedTasks],
      ...(version === '2' ? [] : ([['asked', askingTasks]] as const)),
    ] as const) {
      const responses = await Runners.runTask(tasks as typeof finishedTasks, { ...config, resume: name, services })
      expect([...responses.values()].every(({ restored }) => restored)).toBe(true)
      const path = file(name === 'own' ? 'own' : 'store')
      expect(query(path, 'PRAGMA user_version')).toEqual([{ user_version: SCHEMA_VERSION }])
      expect(query(path, 'SELECT count(*) AS n FROM sessions WHERE run_id = ?', name)[0]!.n).toBeGreaterThan(1)
    }
    const [answers] = query(file('store'), `SELECT count(*) AS n FROM answers WHERE run_id = 'asked'`)
    expect(answers).toEqual({ n: version === '2' ? 0 : 2 })
    const gone = await Runners.runTask(shortened, { store, resume: 'killed' })
    expect([...gone.values()].map(({ restored }) => restored)).toEqual([true, false, false])
    expect(query(file('store'), 'PRAGMA integrity_check')).toEqual([{ integrity_check: 'ok' }])
    const again = await Runners.runTask(finishedTasks, { ...config, resume: 'finished', retryFailed: true })
    expect([...again.values()].filter(({ restored }) => !restored).map(({ id }) => id)).toEqual(['never'])
  })

  it('is removed from, and pruned', async () => {
    const { store, file } = oldStore(folder)
    const options = { cwd: store, env: { MANYWORLDS_STORE: store } }
    expect(await manyworlds(['rm', 'late', '--yes'], options)).toMatchObject({ code: 0 })
    expect(RunFile.list({ store })).not.toContain('late')
    await Runners.runTask(killedTasks[0]!, { store, runId: 'new', keep: { runs: 1 } })
    expect(query(file('store'), 'SELECT run_id FROM run')).toEqual([{ run_id: 'new' }])
    expect(query(file('store'), 'SELECT count(*) AS n FROM _tasks')).toEqual([{ n: 1 }])
  })
})

describe('a store that is migrated', () => {
  it.each([
    ['a file of version 1', '', 'finished'],
    ['a store of version 2', 'second', 'store'],
    ['a store of version 3', 'third', 'store'],
    ['a store of version 4', 'fourth', 'store'],
    ['a store of version 5', 'fifth', 'store'],
    ['a store of version 6', 'sixth', 'store'],
    ['a store of version 7', 'seventh', 'store'],
  ])('has the same tables, indexes and views as a new one: %s', async (_what, folder, name) => {
    const { store, file } = oldStore(folder)
    const fresh = join(store, 'fresh.sqlite')
    await Runners.runTask(killedTasks[0]!, { store: fresh, runId: 'fresh' })
    await Runners.runTask(finishedTasks, { store, resume: 'finished', maxAttempts: 2 })
    const schema = (path: string) =>
      query(path, 'SELECT type, name, tbl_name FROM sqlite_schema ORDER BY type, name').map((row) => ({ ...row }))
    const columns = (path: string) =>
      schema(path)
        .filter(({ type }) => type !== 'index')
        .map(({ name }) => query(path, `SELECT name, type, "notnull", dflt_value FROM pragma_table_info('${name}')`))
    expect(schema(file(name))).toEqual(schema(fresh))
    expect(columns(file(name))).toEqual(columns(fresh))
  })

  it('is left as it was if its driver is killed in the middle', async () => {
    const { store, file } = oldStore('second')
    const script = `import { DatabaseSync } from 'node:sqlite'
      import { migrate } from ${JSON.stringify(new URL('../../src/store/migrations.ts', import.meta.url).href)}
      const db = new DatabaseSync(${JSON.stringify(file('store'))})
      db.exec('PRAGMA cache_size = 1; BEGIN IMMEDIATE')
      migrate(db, 2)
      process.kill(process.pid, 'SIGKILL')`
    const ended = await runScript(undefined, { flags: ['--input-type=module', '--eval', script] })
    expect(ended.code, ended.stderr).toBe(null)
    using run = RunFile.open('finished', { store })
    expect(run.overview().counts).toMatchObject({ success: 4 })
    expect(query(file('store'), 'PRAGMA user_version')).toEqual([{ user_version: 2 }])
    const responses = await Runners.runTask(finishedTasks, { store, resume: 'finished', maxAttempts: 2 })
    expect([...responses.values()].every(({ restored }) => restored)).toBe(true)
    expect(query(file('store'), 'PRAGMA user_version')).toEqual([{ user_version: SCHEMA_VERSION }])
  })
})
