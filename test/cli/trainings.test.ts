import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { Runners } from 'manyworlds'
import { listTrainings, RunFile, StoredTraining } from 'manyworlds/runs'
import { afterAll, describe, expect, it } from 'vitest'
import { echo } from '../agents/basics.ts'
import { openTraining } from '../store/open-training.ts'
import { sampleTraining } from '../store/sample-training.ts'
import { changed, query, storeFolder } from '../store/store-folder.ts'
import { filesOf, shaOf } from '../store/training-rows.ts'
import { refused } from '../support/refused.ts'
import { manyworlds } from './manyworlds.ts'

afterAll(() => Runners.shutdown())

/** A store with a run and a training with runs. */
async function place() {
  const { store, file } = storeFolder()
  await Runners.runTask(echo.task(1, { id: 'a' }), { store, runId: 'alone' })
  await sampleTraining(store, { id: 'desk', updates: 6, withRuns: true })
  const env = { MANYWORLDS_STORE: store, LANG: 'C.UTF-8', LC_ALL: '' }
  const say = (...words: string[]) => manyworlds(words, { cwd: store, env })
  return { store, file: file(''), say, env }
}

const OF_DESK = [
  ...Array.from({ length: 6 }, (_, i) => `desk.u0000${i}`),
  ...['desk.v00000.validation', 'desk.v00005.validation', 'desk.v00000.test', 'desk.v00006.test'],
]

describe('a stored training', () => {
  it('is read: overview, updates, versions, evaluations, plans, runs and weights', async () => {
    const { store, file } = await place()
    expect(listTrainings({ store })).toMatchObject([
      {
        ...{ id: 'desk', file, status: 'finished', agent: 'clerk', policy: 'desk', seed: 7, sessions: 1 },
        ...{ updates: 6, epoch: 2, versions: 7, keptVersions: 7, best: 6, runs: 10, script: 'train.ts' },
        successRate: expect.closeTo(0.783, 3),
        validation: { version: 5, summary: { success: { value: expect.closeTo(0.783, 3) } } },
        test: { version: 6 },
        curve: shaOf('desk 5'),
      },
    ])
    using training = StoredTraining.open('last', { store })
    expect(training.config()).toEqual({ rollouts: 8 })
    expect(training.updates().map(({ number, curveSha }) => [number, curveSha])).toEqual(
      Array.from({ length: 6 }, (_, i) => [i, shaOf(`desk ${i}`)]),
    )
    expect(training.plans()).toHaveLength(6)
    expect(training.versions().map(({ version, update }) => [version, update])).toEqual(
      Array.from({ length: 7 }, (_, i) => [i, i === 0 ? null : i - 1]),
    )
    expect(training.evaluations()).toHaveLength(4)
    expect(training.runsOf().toSorted()).toEqual(OF_DESK.toSorted())
    expect(training.runsOf('train')).toEqual(OF_DESK.slice(0, 6))
    expect(training.runsOf('test')).toEqual(['desk.v00000.test', 'desk.v00006.test'])
    expect(Buffer.from(await training.weights(3)).toString()).toBe('weights 3')
    await refused(() => training.weights(8), 'STORE_GONE', 'no version 8', '0, 1, 2, 3, 4, 5, 6')
    await refused(() => StoredTraining.open('dusk', { store }), 'RUN_NOT_FOUND', "no training 'dusk'", 'desk')
  })

  it('is running, or died, or failed, as it is', async () => {
    const { store, file } = storeFolder()
    const status = () => listTrainings({ store }).map((training) => training.status)
    const db = openTraining(file(''))
    expect(status()).toEqual(['running'])
    changed(file(''), `UPDATE _trainings SET owner = '0123456789ab'`)
    expect(status()).toEqual(['died'])
    openTraining(file('')).close('failed', 'NaN in the loss')
    expect(listTrainings({ store })).toMatchObject([{ status: 'failed', error: 'NaN in the loss', sessions: 2 }])
    await refused(() => db.close('finished'), 'RUN_LOCKED')
  })
})

describe('manyworlds trainings', () => {
  it('lists trainings with their state and figures, as text and as JSON', async () => {
    const { say, file, store } = await place()
    await sampleTraining(store, { id: 'broke', updates: 2, ending: 'failed' })
    const { stdout, code } = await say('trainings')
    expect(code).toBe(0)
    expect(stdout).toMatch(/^training +status +started +updates +epoch +solved +validation +test +best/)
    expect(stdout).toMatch(/^desk +finished .* 6 +2 +78\.3 % +78\.3 % +90\.0 % +v6/m)
    expect(stdout).toMatch(/^broke +failed .*\n {4}the learner gave NaN/m)
    const json = (await say('trainings', '--json', '--limit', '1')).stdout.trimEnd().split('\n')
    expect(json.map((line) => JSON.parse(line))).toMatchObject([{ id: 'broke', status: 'failed', updates: 2 }])
    changed(file, `UPDATE _trainings SET config = 3, seed = 'x' WHERE id = 'desk'`)
    const damaged = await say('trainings')
    expect(damaged.code).toBe(1)
    expect(damaged.stdout).toMatch(/^desk +unreadable\n {4}.*is damaged/m)
    expect(damaged.stdout).toMatch(/^broke +failed/m)
  })

  it('says that there are none', async () => {
    const { store } = storeFolder()
    const none = await manyworlds(['trainings', '--dir', store])
    expect(none).toMatchObject({ code: 0, stdout: '', stderr: expect.stringContaining('no trainings in') })
  })
})

describe('manyworlds show TRAINING', () => {
  it('shows its curves, figures, alarms, evaluations and where to look further', async () => {
    const { say } = await place()
    const { stdout, code, stderr } = await say('show', 'desk')
    expect(code, stderr).toBe(0)
    expect(stdout).toMatch(/^training desk finished, 6 updates in 2 epochs\n/)
    expect(stdout).toContain('solved of the training episodes, by update')
    expect(stdout).toMatch(/ 100 %│[ ▁▂▃▄▅▆▇█]*\n/)
    expect(stdout).toContain('solved in validation, by version')
    expect(stdout).toMatch(/^loss +0\.1 +0\.0167 +0\.0167 +0\.1 +[▁▂▃▄▅▆▇█]{6}$/m)
    for (const name of ['entropy', 'KL', 'gradient'])
      expect(stdout).toMatch(new RegExp(`^${name} .* [▁▂▃▄▅▆▇█]{6}$`, 'm'))
    expect(stdout).toMatch(/^1 alarm\n {2}update 5: entropy has fallen/m)
    expect(stdout).toMatch(/version 5 +validation +78\.3 % \(95 % interval 68\.3 to 86\.4\) +24 tasks x 4/)
    expect(stdout).toMatch(/best +version 6/)
    expect(stdout).toContain(`SHA-256 ${shaOf('desk 5')}`)
    expect(stdout).toContain('10 runs, from desk.v00000.validation to desk.v00006.test')
    expect(stdout).toContain('manyworlds show desk.u00005')
    expect((await say('show', 'last')).stdout).toBe(stdout)
    expect((await say('show', 'de')).stdout).toBe(stdout)
  })

  it('is ASCII where the terminal has no other characters', async () => {
    const { store, env } = await place()
    const inAscii = await manyworlds(['show', 'desk'], { cwd: store, env: { ...env, LC_ALL: 'C' } })
    expect(inAscii.stdout).toMatch(/^[\n -~]+$/)
    expect(inAscii.stdout).toMatch(/^ 100 %\|/m)
  })

  it('is JSON with everything', async () => {
    const { say } = await place()
    const shown = JSON.parse((await say('show', 'desk', '--json')).stdout)
    expect(shown).toMatchObject({
      ...{ overview: { id: 'desk', updates: 6 }, config: { rollouts: 8 } },
      ...{ runs: expect.arrayContaining(OF_DESK) },
    })
    expect(shown.updates[5]).toMatchObject({ number: 5, report: { metrics: { loss: expect.closeTo(0.0167, 4) } } })
    expect(shown.versions).toHaveLength(7)
    expect(shown.evaluations).toHaveLength(4)
  })

  it('has no tasks: its runs have', async () => {
    const { say } = await place()
    const task = await say('show', 'desk', 'a')
    expect(task).toMatchObject({ code: 2, stderr: expect.stringContaining('manyworlds show desk.u00000 a') })
    expect((await say('show', 'desk', '--failed')).code).toBe(2)
    const run = await say('show', 'desk.u00003')
    expect(run.stdout).toMatch(/^training +desk +manyworlds show desk$/m)
    expect((await say('show', 'desk.u00003', 'a')).code).toBe(0)
  })
})

describe('runs of a training', () => {
  it('are left out of the list of runs, which says so, and are listed with --all', async () => {
    const { say } = await place()
    const runs = await say('runs')
    expect(runs.stdout).toMatch(/^run .*\nalone .*\n$/)
    expect(runs.stderr).toContain('10 runs of trainings are left out: --all')
    const all = await say('runs', '--all')
    expect(all.stdout.trimEnd().split('\n')).toHaveLength(12)
    expect(all.stderr).not.toContain('left out')
    expect((await say('runs', '--json')).stdout.trimEnd().split('\n')).toHaveLength(1)
  })

  it('are not what `last` means, nor the beginning of an id', async () => {
    const { store } = await place()
    using last = RunFile.open('last', { store })
    expect(last.runId).toBe('alone')
    await Runners.runTask(echo.task(1), { store, runId: 'desk-2' })
    using begun = RunFile.open('des', { store })
    expect(begun.runId).toBe('desk-2')
    using only = RunFile.open('desk.v00006', { store })
    expect(only.runId).toBe('desk.v00006.test')
  })

  it('are not removed alone, neither by name nor by age nor by `keep`', async () => {
    const { say, store, file } = await place()
    const refusal = await say('rm', 'desk.u00003', '--yes')
    expect(refusal).toMatchObject({ code: 2, stderr: expect.stringContaining('manyworlds rm desk') })
    changed(file, 'UPDATE _run SET created_at = 1')
    expect((await say('rm', '--older-than', '1d', '--dry-run')).stdout).toBe('alone\n')
    for (const runId of ['b', 'c']) await Runners.runTask(echo.task(1), { store, runId, keep: { runs: 1, days: 1 } })
    const left = RunFile.list({ store })
    expect(left.filter((id) => !id.startsWith('desk.'))).toEqual(['c'])
    expect(left.filter((id) => id.startsWith('desk.')).toSorted()).toEqual(OF_DESK.toSorted())
  })

  it('are runs of their own in a copy', async () => {
    const { say, store } = await place()
    const copy = join(store, 'copies', 'desk.u00003.sqlite')
    expect(await say('export-run', 'desk.u00003', copy)).toMatchObject({ code: 0 })
    expect(query(copy, 'SELECT run_id, training FROM run')).toEqual([{ run_id: 'desk.u00003', training: null }])
  })
})

describe('manyworlds rm TRAINING', () => {
  it('removes its runs, its files and its rows, and nothing else', async () => {
    const { say, store, file } = await place()
    await sampleTraining(store, { id: 'other', updates: 2, withRuns: true })
    expect((await say('rm', 'desk', '--dry-run')).stdout).toBe(
      'desk (training: 10 runs, 7 versions, 70 B of weights)\n',
    )
    expect((await say('rm', 'desk')).code).toBe(2)
    expect(filesOf(file, 'desk').length).toBeGreaterThan(0)
    expect(await say('rm', 'desk', 'alone', '--yes')).toMatchObject({
      code: 0,
      stderr: 'removed 1 run and 1 training\n',
    })
    expect(existsSync(join(store, 'store.trainings', 'desk'))).toBe(false)
    expect(filesOf(file, 'other').length).toBeGreaterThan(0)
    expect(query(file, 'SELECT DISTINCT training FROM run')).toEqual([{ training: 'other' }])
    for (const view of ['plans', 'updates', 'versions', 'evaluations'])
      expect(query(file, `SELECT DISTINCT training FROM ${view}`)).toEqual([{ training: 'other' }])
    expect(query(file, 'SELECT count(*) AS n FROM _tasks')).toEqual([{ n: 5 }])
    await sampleTraining(store, { id: 'desk', updates: 1 })
  })

  it('leaves one that is going on', async () => {
    const { store, file } = storeFolder()
    openTraining(file(''))
    const rm = await manyworlds(['rm', 't', '--yes'], { cwd: store, env: { MANYWORLDS_STORE: store } })
    expect(rm).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('training t is in progress and was not removed'),
    })
    expect(listTrainings({ store })).toHaveLength(1)
  })

  it('that was cut short leaves one that can only be removed', async () => {
    const { say, store, file } = await place()
    changed(file, `UPDATE _trainings SET ending = 'removing', ended_at = NULL, owner = '0123456789ab'`)
    await refused(() => openTraining(file, { id: 'desk' }), 'RUN_EXISTS', 'partly removed', 'manyworlds rm')
    expect((await say('trainings')).stdout).toMatch(/^desk +failed .*\n {4}its removal was interrupted/m)
    expect((await say('rm', 'desk', '--yes')).code).toBe(0)
    expect(listTrainings({ store })).toEqual([])
  })
})
