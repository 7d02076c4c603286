import { copyFileSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Runners } from 'manyworlds'
import { RunFile } from 'manyworlds/runs'
import { afterAll, describe, expect, it, onTestFinished } from 'vitest'
import { SCHEMA_VERSION } from '../../src/store/schema.ts'
import { manyworlds } from '../cli/manyworlds.ts'
import { finishedTasks, killedTasks } from './fixtures/first-edition.ts'
import { query } from './store-folder.ts'

afterAll(() => Runners.shutdown())

/** A folder with copies of the files that the version before the second edition has written. */
function oldStore() {
  const store = mkdtempSync(join(tmpdir(), 'manyworlds-old-'))
  onTestFinished(() => rmSync(store, { recursive: true, force: true }))
  const fixtures = join(import.meta.dirname, 'fixtures')
  for (const name of readdirSync(fixtures).filter((name) => name.includes('.sqlite')))
    copyFileSync(join(fixtures, name), join(store, name))
  return { store, file: (name: string) => join(store, `${name}.sqlite`) }
}

describe('a file of the first edition', () => {
  it('is listed and shown, and stays as it is', async () => {
    const { store, file } = oldStore()
    const before = readFileSync(file('finished'))
    expect(RunFile.list({ store }).toSorted()).toEqual(['finished', 'killed', 'resumed'])
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
    expect(resumed.task('never')!.attempts.map(({ role }) => role)).toContain('superseded')
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
    const tasks = killedTasks.map((task) => (task.id === 'running' ? { ...task, timeoutMs: 100 } : task))
    const responses = await Runners.runTask(tasks as typeof killedTasks, { store, resume: 'killed' })
    expect([...responses.values()]).toMatchObject([
      { id: 'done', restored: true },
      { id: 'running', restored: false, status: 'timeout' },
      { id: 'waiting', restored: false, status: 'success' },
    ])
    expect(query(file('killed'), 'PRAGMA integrity_check')).toEqual([{ integrity_check: 'ok' }])
  })

  it('is imported into a store', async () => {
    const { store, file } = oldStore()
    const folder = mkdtempSync(join(tmpdir(), 'manyworlds-new-'))
    onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
    const options = { cwd: folder, env: { MANYWORLDS_STORE: folder } }
    for (const name of ['finished', 'resumed'])
      expect(await manyworlds(['import-run', file(name)], options)).toMatchObject({ code: 0 })
    for (const name of ['finished', 'resumed']) {
      const responses = await Runners.runTask(finishedTasks, { store: folder, resume: name, maxAttempts: 2 })
      expect([...responses.values()].every(({ restored }) => restored)).toBe(true)
      expect(responses.get('long')!.trajectory).toHaveLength(20)
    }
    expect(store).not.toBe(folder)
  })
})

describe('a store of version 2', () => {
  it('is shown as it is, and migrated by the first run that writes to it', async () => {
    const store = mkdtempSync(join(tmpdir(), 'manyworlds-second-'))
    onTestFinished(() => rmSync(store, { recursive: true, force: true }))
    const file = join(store, 'store.sqlite')
    copyFileSync(join(import.meta.dirname, 'fixtures/second/store.sqlite'), file)
    const before = readFileSync(file)
    using run = RunFile.open('finished', { store })
    expect(run.overview()).toMatchObject({ counts: { success: 4, failed: 1 } })
    expect(run.task('long')!.response!.trajectory).toHaveLength(20)
    expect(run.task('long')!.response!.timing.waitedMs).toBe(0)
    using killed = RunFile.open('killed', { store })
    expect(killed.overview().status).toBe('died')
    expect(killed.task('running')!.unfinished[0]!.trajectory).toMatchObject([{ action: 'begin' }])
    expect(readFileSync(file).equals(before)).toBe(true)
    const responses = await Runners.runTask(finishedTasks, { store, resume: 'finished', maxAttempts: 2 })
    expect([...responses.values()].every(({ restored }) => restored)).toBe(true)
    expect(query(file, 'PRAGMA user_version')).toEqual([{ user_version: SCHEMA_VERSION }])
    expect(query(file, 'SELECT count(*) AS n FROM answers')).toEqual([{ n: 0 }])
    const tasks = killedTasks.map((task) => (task.id === 'running' ? { ...task, timeoutMs: 100 } : task))
    const gone = await Runners.runTask(tasks as typeof killedTasks, { store, resume: 'killed' })
    expect([...gone.values()].map(({ restored }) => restored)).toEqual([true, false, true])
  })
})
