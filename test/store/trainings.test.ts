import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { ManyworldsError, Runners } from 'manyworlds'
import { RunFile } from 'manyworlds/runs'
import { afterAll, describe, expect, it, onTestFinished } from 'vitest'
import type { EvalRow } from '../../src/store/trainings/training-rows.ts'
import { echo } from '../agents/basics.ts'
import { refused } from '../support/refused.ts'
import { runScript } from '../support/run-script.ts'
import { openTraining } from './open-training.ts'
import { itMounts, ownDisk } from './own-disk.ts'
import { changeFile, columnsOf, says, spoil, WRONG } from './spoil.ts'
import { changed, query, storeFolder } from './store-folder.ts'
import { filesFolder, filesOf, oneUpdate, planRow, shaOf, updateRow, versionRow } from './training-rows.ts'

afterAll(() => Runners.shutdown())

/** Where a training of one test is. */
function place() {
  const { store, file } = storeFolder()
  return { store, path: file('') }
}

describe('a training', () => {
  it('has in its next session what it committed in earlier ones', async () => {
    const { path } = place()
    const first = openTraining(path, { mode: 'start' })
    expect(first).toMatchObject({ id: 't', isNew: true, config: { rollouts: 8 } })
    expect(first.history).toEqual({ plans: [], updates: [], versions: [], evals: [], sampler: null, best: null })
    const untrained = await first.writeFile(Buffer.from('weights 0'))
    first.version(versionRow(0, untrained, 9))
    const { state, weights } = await oneUpdate(first, 0)
    first.plan(planRow(1))
    const evaluation: EvalRow = {
      ...{ version: 1, split: 'validation', run: 't.v00001.validation', tasks: 2, rollouts: 4 },
      summary: { successRate: 0.5 },
    }
    first.evaluation(evaluation, 1)
    first.close('interrupted')

    const second = openTraining(path, { mode: 'resume' })
    expect(second).toMatchObject({ isNew: false, config: { rollouts: 8 } })
    const { plans, updates, versions, evals, sampler, best } = second.history
    expect(plans).toMatchObject([planRow(1)])
    expect(updates).toMatchObject([updateRow(0, state)])
    expect(versions).toMatchObject([versionRow(0, untrained, 9), versionRow(1, weights, 9)])
    expect(evals).toMatchObject([evaluation])
    expect({ sampler, best }).toEqual({ sampler: { next: 1 }, best: 1 })
    expect(Buffer.from(await second.readFile(weights)).toString()).toBe('weights 1')
    second.close('finished')
    expect(query(path, 'SELECT id, ending, sessions, updates, best FROM trainings')).toEqual([
      { id: 't', ending: 'finished', sessions: 2, updates: 1, best: 1 },
    ])
    expect(query(path, 'SELECT training, number, success_rate, metrics FROM updates')).toEqual([
      { training: 't', number: 0, success_rate: 0.25, metrics: '{"loss":-0.1,"entropy":1.2}' },
    ])
    expect(query(path, 'SELECT number, run_id, is_done FROM plans ORDER BY number')).toEqual([
      { number: 0, run_id: 't.u00000', is_done: 1 },
      { number: 1, run_id: 't.u00001', is_done: 0 },
    ])
    expect(query(path, 'SELECT version, update_number, is_kept FROM versions ORDER BY version')).toEqual([
      { version: 0, update_number: null, is_kept: 1 },
      { version: 1, update_number: 0, is_kept: 1 },
    ])
    expect(query(path, 'SELECT version, split, run_id, summary FROM evaluations')).toEqual([
      { version: 1, split: 'validation', run_id: 't.v00001.validation', summary: '{"successRate":0.5}' },
    ])
  })

  it('is not begun under an id that is taken, and not resumed where there is none', async () => {
    const { store, path } = place()
    await refused(() => openTraining(path, { mode: 'resume' }), 'RUN_NOT_FOUND', "no training 't'", 'resume: ')
    expect(statSync(path, { throwIfNoEntry: false })).toBe(undefined)
    openTraining(path, { mode: 'start' }).close('finished')
    await refused(() => openTraining(path, { mode: 'start' }), 'RUN_EXISTS', 'already exists', 'manyworlds rm')
    await refused(() => openTraining(path, { id: 'u', mode: 'resume' }), 'RUN_NOT_FOUND', "'u'")
    await Runners.runTask(echo.task(1), { store, runId: 'a-run' })
    await refused(() => openTraining(path, { id: 'a-run' }), 'RUN_EXISTS', "conflicts with run 'a-run'")
    await refused(() => Runners.runTask(echo.task(1), { store, runId: 't' }), 'RUN_EXISTS', 'id of a training')
    for (const id of ['', '../t', 'a/b', 'auto', 'last', 'x'.repeat(101)])
      await refused(() => openTraining(path, { id }), 'CONFIG_INVALID', 'it must start')
    await refused(() => openTraining(join(store, 'own.sqlite'), { shared: false }), 'CONFIG_INVALID', 'give a folder')
  })

  it('has the runs that are named after it, which stay readable as any other', async () => {
    const { store, path } = place()
    const db = openTraining(path)
    const runs = ['t.u00000', 't.v00000.validation', 't.v00012.test', 't.u0', 't.x00000', 'other.u00000']
    for (const runId of runs) await Runners.runTask(echo.task(1, { id: 'a' }), { store, runId })
    db.close('finished')
    const owned = query(path, 'SELECT run_id FROM run WHERE training = ? ORDER BY run_id', 't')
    expect(owned.map(({ run_id }) => run_id)).toEqual(['t.u00000', 't.v00000.validation', 't.v00012.test'])
    using run = RunFile.open('t.u00000', { store })
    expect(run.task('a')?.response?.answer).toBe(1)
  })
})

it('a version without weights of its own, such as a served model, is a version', async () => {
  const { path } = place()
  const db = openTraining(path)
  db.version({ ...versionRow(0, '', 0), kept: false })
  db.close('interrupted')
  expect(openTraining(path).history.versions).toMatchObject([{ version: 0, kept: false, sha256: '' }])
})

describe('files of a training', () => {
  it('are there for each version, and for the state of the last update alone', async () => {
    const { path } = place()
    const db = openTraining(path)
    const first = await oneUpdate(db, 0)
    expect(filesOf(path)).toEqual([first.state, first.weights].toSorted())
    const second = await oneUpdate(db, 1)
    expect(filesOf(path)).toEqual([first.weights, second.state, second.weights].toSorted())
    // Written ahead of its commit, it stays whatever else is removed.
    const next = await db.writeFile(Buffer.from('state 2'))
    db.drop([1, 17])
    expect(filesOf(path)).toEqual([second.state, second.weights, next].toSorted())
    expect(query(path, 'SELECT version, is_kept FROM versions')).toEqual([
      { version: 1, is_kept: 0 },
      { version: 2, is_kept: 1 },
    ])
    await refused(() => db.readFile(first.weights), 'STORE_GONE', 'ENOENT', "training 't'")
  })

  it('that two versions share stay while one of them is kept', async () => {
    const { path } = place()
    const db = openTraining(path)
    const sha256 = await db.writeFile(Buffer.from('the same'))
    for (const version of [0, 1]) db.version(versionRow(version, sha256, 8))
    db.drop([0])
    expect(filesOf(path)).toEqual([sha256])
    db.drop([1])
    expect(filesOf(path)).toEqual([])
  })

  it('are not written again if they are there, unless they are damaged', async () => {
    const { path } = place()
    const db = openTraining(path)
    const sha256 = await db.writeFile(Buffer.from('weights'))
    const at = join(filesFolder(path), sha256)
    const inode = statSync(at).ino
    expect(await db.writeFile(Buffer.from('weights'))).toBe(sha256)
    expect(statSync(at).ino).toBe(inode)
    writeFileSync(at, 'weighty')
    await refused(() => db.readFile(sha256), 'STORE_CORRUPT', at, shaOf('weighty'))
    await db.writeFile(Buffer.from('weights'))
    expect(readFileSync(at, 'utf8')).toBe('weights')
  })

  it('of somebody else stay', async () => {
    const { path } = place()
    const db = openTraining(path)
    const { state, weights } = await oneUpdate(db, 0)
    const left = `${shaOf('x')}.0123456789ab.tmp`
    for (const name of ['notes.txt', shaOf('orphan'), left]) writeFileSync(join(filesFolder(path), name), '')
    db.close('finished')
    openTraining(path)
    expect(filesOf(path)).toEqual([state, weights, 'notes.txt'].toSorted())
  })

  itMounts(
    'that do not fit on the disk are one clear error, leave nothing behind, and fit when there is room',
    async () => {
      const disk = ownDisk('size=2m')
      const path = join(disk.path, 'store.sqlite')
      const db = openTraining(path)
      const { state, weights } = await oneUpdate(db, 0)
      const large = Buffer.alloc(1024 * 1024, 1)
      writeFileSync(join(disk.path, 'ballast'), Buffer.alloc(1024 * 1024))
      await refused(() => db.writeFile(large), 'STORE_FULL', 'ENOSPC', "training 't'", 'resume the training')
      expect(filesOf(path)).toEqual([state, weights].toSorted())
      rmSync(join(disk.path, 'ballast'))
      const sha256 = await db.writeFile(large)
      expect(await db.readFile(sha256)).toHaveLength(large.length)
      db.close('finished')
    },
  )

  it('whose folder cannot be made are one clear error', async () => {
    const { store, path } = place()
    writeFileSync(join(store, 'store.trainings'), 'a file')
    const db = openTraining(path)
    await refused(() => db.writeFile(Buffer.from('x')), 'STORE_NOT_WRITABLE', 'store.trainings')
  })
})

describe('a process that is killed', () => {
  it.each([
    ['opened', { plans: 0, updates: 0 }],
    ['planned', { plans: 1, updates: 0 }],
    ['written', { plans: 1, updates: 0 }],
    ['committed', { plans: 0, updates: 1 }],
  ])('leaves what it committed and no other file: when it had %s', async (until, left) => {
    const { path } = place()
    const ended = await runScript('store/training.ts', { args: [path, until] })
    expect(ended.code, ended.stderr).toBe(null)
    if (until === 'written') expect(filesOf(path)).toHaveLength(2)
    const db = openTraining(path, { mode: 'resume' })
    const { plans, updates, versions } = db.history
    expect({ plans: plans.length, updates: updates.length }).toEqual(left)
    const named = [...updates.map(({ stateSha }) => stateSha), ...versions.map(({ sha256 }) => sha256)]
    expect(until === 'opened' || until === 'planned' ? [] : filesOf(path)).toEqual(named.toSorted())
    for (const sha256 of named) await db.readFile(sha256)
    if (updates.length === 0) {
      if (plans.length === 0) db.plan(planRow(0))
      const state = await db.writeFile(Buffer.from('state 0'))
      db.update({ update: updateRow(0, state), sampler: null })
      expect(filesOf(path)).toEqual([state])
    }
  })
})

describe('one process per training', () => {
  it('refuses a second one by name, and takes over when the first is dead', async () => {
    const { path } = place()
    const script = resolve(import.meta.dirname, '../scripts/store/training.ts')
    const first = spawn(process.execPath, [script, path, 'never'], { stdio: ['ignore', 'pipe', 'inherit'] })
    onTestFinished(() => void first.kill('SIGKILL'))
    await once(first.stdout, 'data')
    await refused(() => openTraining(path), 'RUN_LOCKED', "training 't'", `process ${first.pid} on`)
    // Another training of the same store is nobody's business.
    openTraining(path, { id: 'other' }).close('finished')
    first.kill('SIGKILL')
    await once(first, 'close')
    const second = openTraining(path, { mode: 'resume' })
    expect(second.history.updates).toHaveLength(1)
    await refused(() => openTraining(path), 'RUN_LOCKED', `process ${process.pid} on`)
    second.close('finished')
    openTraining(path).close('finished')
  })

  it('lets nobody write whose training was taken over', async () => {
    const { path } = place()
    const db = openTraining(path)
    changed(path, `UPDATE _trainings SET owner = '0123456789ab'`)
    await refused(() => db.plan(planRow(0)), 'RUN_LOCKED', 'taken over')
    await refused(() => db.close('finished'), 'RUN_LOCKED', 'taken over')
    expect(query(path, 'SELECT count(*) AS n FROM plans')).toEqual([{ n: 0 }])
    openTraining(path).plan(planRow(0))
  })
})

it('a store with damaged rows of a training is refused with one clear error, whatever is wrong with them', async () => {
  const { store, path } = place()
  const db = openTraining(path)
  await oneUpdate(db, 0)
  db.plan(planRow(1))
  db.evaluation({ version: 1, split: 'test', run: 't.v00001.test', tasks: 1, rollouts: 1, summary: null }, 1)
  db.close('finished')
  const sound = readFileSync(path)
  const tables = ['_trainings', '_plans', '_updates', '_versions', '_evals']
  const outcomes = new Map<string, number>()
  for (const [number, { table, column }] of columnsOf(path).entries()) {
    if (!tables.includes(table)) continue
    for (const [kind, value] of WRONG.entries()) {
      // Each column with a third of them; all would take a minute.
      if ((number + kind) % 3 !== 0) continue
      const folder = join(store, `${number}-${kind}`)
      mkdirSync(folder)
      const at = join(folder, 'store.sqlite')
      if (!spoil((change) => changeFile(at, sound, change), table, column, value)) continue
      const what = `${table}.${column} = ${String(value)}`
      for (const words of [['trainings'], ['show', 't']]) {
        const { stderr } = await says(...words, '--dir', folder)
        expect(stderr, `${what}: ${words}`).toMatch(/^(manyworlds: [^\n]* \[(STORE_CORRUPT|RUN_NOT_FOUND)\]\n)?$/)
      }
      let outcome = 'opened'
      try {
        openTraining(at).close('finished')
      } catch (error) {
        if (!ManyworldsError.is(error)) throw new Error(`${what}: no clear error`, { cause: error })
        expect(error.message.split('\n'), what).toHaveLength(1)
        outcome = error.code
      }
      expect(['opened', 'STORE_CORRUPT'], `${what}: ${outcome}`).toContain(outcome)
      outcomes.set(outcome, (outcomes.get(outcome) ?? 0) + 1)
    }
  }
  expect(outcomes.get('opened')).toBeGreaterThan(20)
  expect(outcomes.get('STORE_CORRUPT')).toBeGreaterThan(20)
}, 120_000)
