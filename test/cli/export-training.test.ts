import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Runners } from 'manyworlds'
import { RunFile, StoredTraining } from 'manyworlds/runs'
import { DistributedTrainingPipeline, ExperienceBuffer, loadPolicy } from 'manyworlds/train'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { TrainingDb } from '../../src/store/trainings/training-db.ts'
import { policyOfWeights } from '../../src/train/policy-of-weights.ts'
import { driver, lightsPolicy, lightsTasks } from '../agents/lights.ts'
import { sampleTraining } from '../store/sample-training.ts'
import { changed, query } from '../store/store-folder.ts'
import { refused } from '../support/refused.ts'
import { manyworlds } from './manyworlds.ts'

const folder = mkdtempSync(join(tmpdir(), 'manyworlds-cli-'))
const store = join(folder, 'runs')
const say = (...words: string[]) =>
  manyworlds(words, { cwd: folder, env: { MANYWORLDS_STORE: store, LC_ALL: 'C.UTF-8' } })

afterAll(async () => {
  await Runners.shutdown()
  rmSync(folder, { recursive: true, force: true })
})

/** A real training: 2 epochs of 3 updates, 4 tasks and 4 rollouts each. */
beforeAll(async () => {
  const pipeline = new DistributedTrainingPipeline({
    ...{ agent: driver, tasks: lightsTasks(60), store, runId: 'driving', workerNum: 2, seed: 5 },
    ...{ rollouts: 4, tasksPerUpdate: 4, tasksPerEpoch: 12, algorithm: { lr: 0.1 } },
  })
  for await (const _ of pipeline.train({ epochs: 2 }));
}, 60_000)

const lines = (text: string) => text.trimEnd().split('\n')
const json = (text: string) => lines(text).map((line) => JSON.parse(line) as Record<string, unknown>)

describe('a training that was run', () => {
  it('is listed and shown', async () => {
    expect((await say('trainings')).stdout).toMatch(/^driving +finished .* 6 +2 +\d/m)
    const { stdout } = await say('show', 'driving')
    expect(stdout).toMatch(
      /^training driving finished, 6 updates in 2 epochs\nagent +lights-driver, policy driver, seed 5\n/,
    )
    for (const what of ['solved of the training episodes', 'solved in validation', 'loss  ', 'entropy  ', 'gradient  '])
      expect(stdout).toContain(what)
    expect(stdout).toMatch(/version \d +validation +\d+\.\d % \(95 % interval/)
    expect((await say('show', 'driving.u00005')).stdout).toMatch(/^training +driving /m)
  })
})

describe('manyworlds export TRAINING', () => {
  it('writes its best policy to a folder that loadPolicy opens, from the weights alone', async () => {
    using training = StoredTraining.open('driving', { store })
    const { best } = training.overview()
    const folder = join(store, 'best')
    const saved = await say('export', 'driving', '--policy', folder)
    expect(saved).toMatchObject({
      code: 0,
      stdout: '',
      stderr: expect.stringContaining(`version ${best}, the best by`),
    })
    const policy = await loadPolicy<{ light: string }, string>(folder, { policy: lightsPolicy })
    expect(policy).toMatchObject({ name: 'driver', version: best })
    const trained = lightsPolicy.openBytes(await training.weights(best!))
    const question = { observation: { light: 'red' }, candidates: ['stop', 'wait', 'go', 'turn'] }
    const random = () => 0.5
    expect(policy.act({ ...question, mode: 'sample', random })).toEqual(
      trained.act({ ...question, mode: 'sample', random }),
    )
    expect(await say('export', 'driving', '--policy', folder)).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('--force'),
    })
    expect((await say('export', 'driving', '--policy', folder, '--force', '--version', '0')).code).toBe(0)
    expect(await loadPolicy(folder, { policy: lightsPolicy as never })).toMatchObject({ version: 0 })
  })

  it('refuses what has no policy, or none that is known', async () => {
    const run = await say('export', 'driving.u00000', '--policy', 'x')
    expect(run).toMatchObject({ code: 2, stderr: expect.stringContaining('--policy is for trainings') })
    expect((await say('export', 'driving', '--policy', 'x', '--format', 'csv')).code).toBe(2)
    const missing = await say('export', 'driving', '--policy', 'x', '--version', '99')
    expect(missing).toMatchObject({ code: 1, stderr: expect.stringContaining('no version 99') })
    await sampleTraining(store, { id: 'foreign', updates: 1 })
    const foreign = await say('export', 'foreign', '--policy', 'x')
    expect(foreign).toMatchObject({ code: 2, stderr: expect.stringContaining('softmax, neural') })
    expect(existsSync(join(store, '..', 'x'))).toBe(false)
  })

  it('writes the episodes of its collections by default, and those of evaluations if asked', async () => {
    const { stdout } = await say('export', 'driving', '--format', 'jsonl')
    const rows = json(stdout)
    expect(rows).toHaveLength(6 * 16)
    expect(new Set(rows.map(({ runId }) => runId)).size).toBe(6)
    const tests = json((await say('export', 'driving', '--format', 'jsonl', '--split', 'test')).stdout)
    expect(new Set(tests.map(({ runId }) => String(runId).split('.').at(-1)))).toEqual(new Set(['test']))
    const csv = lines((await say('export', 'driving', '--format', 'csv', '--split', 'all')).stdout)
    expect(csv.length).toBeGreaterThan(6 * 16 + 1)
    expect(csv.some((line) => line.endsWith(',driving.u00003'))).toBe(true)
  })

  it('writes trajectories, a file each, and counts what has no tokens', async () => {
    const folder = join(store, 'atif')
    const atif = await say('export', 'driving', '--format', 'atif', '--out', folder)
    expect(atif.stderr).toContain('96 trajectories of 6 runs of training driving')
    expect(readdirSync(folder)).toHaveLength(96)
    const best = await say('export', 'driving', '--format', 'atif', '--best', '--per-group', '1')
    expect(lines(best.stdout)).toHaveLength(6 * 4)
    const verl = await say('export', 'driving', '--format', 'verl')
    expect(verl).toMatchObject({ code: 0, stdout: '', stderr: expect.stringContaining('96 trajectories left out') })
    const parquet = join(store, 'all.parquet')
    expect((await say('export', 'driving', '--out', parquet)).code).toBe(0)
    expect(readFileSync(parquet).subarray(0, 4).toString()).toBe('PAR1')
  })
})

describe('a run of a training whose steps were removed to save space', () => {
  const RUN = 'driving.u00000'

  it('keeps one trajectory in four, always the same ones, and says of the others that they had steps', async () => {
    const ids = () => {
      using run = RunFile.open(RUN, { store })
      return [...run.responses()].map(({ id, removedSteps }) => [id, removedSteps ?? 'kept'])
    }
    const db = TrainingDb.open({
      ...{ path: join(store, 'store.sqlite'), shared: true, id: 'driving', mode: 'resume', durability: 'normal' },
      begin: { manyworlds: '', agent: '', policy: '', seed: 0, config: null },
    })
    expect(await db.thin('alone', 4)).toBe(0)
    await refused(() => db.thin(RUN, 0.5), 'CONFIG_INVALID')
    expect(await db.thin(RUN, 1)).toBe(0)
    const before = ids()
    expect(before.every(([, steps]) => steps === 'kept')).toBe(true)
    const removed = await db.thin(RUN, 4)
    const after = ids()
    expect(after.filter(([, steps]) => steps !== 'kept')).toHaveLength(removed)
    expect(removed).toBeGreaterThan(6)
    expect(removed).toBeLessThan(16)
    await db.thin(RUN, 4)
    expect(ids()).toEqual(after)
    db.close('finished')

    using run = RunFile.open(RUN, { store })
    expect(run.thinned()).toBe(removed)
    const [gone, kept] = [
      [...run.responses()].find(({ removedSteps }) => removedSteps !== undefined)!,
      [...run.responses()].find(({ removedSteps }) => removedSteps === undefined)!,
    ]
    expect(gone).toMatchObject({ removedSteps: 3, digest: expect.any(String), episode: { reward: expect.any(Number) } })
    await refused(() => gone.trajectory, 'STORE_GONE', '3 steps', 'to save space')
    await refused(() => gone.toTrajectory(), 'STORE_GONE', 'to save space')
    expect(kept.trajectory).toHaveLength(3)
    expect(run.task(gone.id)!.attempts).toMatchObject([{ removedSteps: 3, trajectory: [] }])
    await refused(async () => {
      for await (const _ of run.trajectories());
    }, 'STORE_GONE')

    const buffer = new ExperienceBuffer()
    expect(await buffer.addRun(run)).toBe(16 - removed)
    expect(buffer.stats().added).toMatchObject({ held: 16 - removed, removed })
    expect((await say('show', RUN)).stdout).toMatch(new RegExp(`^steps +of ${removed} tasks were removed`, 'm'))
    expect((await say('show', RUN, gone.id)).stdout).toMatch(/^3 steps\n +removed to save space/m)
    const shown = json((await say('show', RUN, '--json')).stdout)
    expect(shown.filter(({ trajectory }) => trajectory === undefined)).toHaveLength(removed)
    for (const format of ['atif', 'sft', 'trl'])
      expect((await say('export', RUN, '--format', format)).stderr).toContain(
        `${removed} have steps that were removed to save space`,
      )
    const steps = await say('export', RUN, '--format', 'jsonl', '--what', 'steps')
    expect(lines(steps.stdout)).toHaveLength(3 * (16 - removed))
    expect(steps.stderr).toContain(`${removed} have steps that were removed`)
    const [view] = query(
      join(store, 'store.sqlite'),
      'SELECT trajectory FROM responses WHERE run_id = ? AND id = ?',
      RUN,
      gone.id,
    )
    expect(view).toEqual({ trajectory: '"3 steps, which were removed to save space"' })
  })
})

describe('the policy of weights', () => {
  it('is found by their header, and refused if that is damaged', async () => {
    using training = StoredTraining.open('driving', { store })
    const bytes = await training.weights(0)
    expect(policyOfWeights('driver', bytes)).toMatchObject({ core: 'softmax', settings: lightsPolicy.settings })
    for (const length of [0, 3, 4, 12, 30])
      await refused(() => policyOfWeights('driver', bytes.subarray(0, length)), 'POLICY_INVALID', "policy 'driver'")
    const damaged = Uint8Array.from(bytes).fill(255, 12, 16)
    await refused(() => policyOfWeights('driver', damaged), 'POLICY_INVALID')
  })

  it('of a damaged file is not exported', async () => {
    await sampleTraining(store, { id: 'damaged', updates: 1 })
    changed(
      join(store, 'store.sqlite'),
      `UPDATE _versions SET sha256 = 'x' WHERE training = (SELECT training FROM _trainings WHERE id = 'damaged')`,
    )
    const damaged = await say('export', 'damaged', '--policy', 'x')
    expect(damaged).toMatchObject({ code: 1, stderr: expect.stringContaining('STORE_CORRUPT') })
  })
})
