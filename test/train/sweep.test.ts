import { spawn } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { Runners } from 'manyworlds'
import { DistributedTrainingPipeline, type PipelineOptions, type SweepGrid, type SweepResult } from 'manyworlds/train'
import { afterAll, describe, expect, onTestFinished, test } from 'vitest'
import { openForReading } from '../../dist/store/open-for-reading.js'
import { pointsOf } from '../../dist/train/sweep/grid.js'
import { summarizeSweep } from '../../dist/train/sweep/summary.js'
import { seeded } from '../../src/random.ts'
import { driver, lightsTasks } from '../agents/lights.ts'
import { SEED, share } from '../support/storm.ts'

afterAll(() => Runners.shutdown())

const LEARNERS = new URL('../agents/lights-learners.ts', import.meta.url)
const SCRIPT = fileURLToPath(new URL('drivers/sweep-lights.ts', import.meta.url))

function newStore(): string {
  const path = mkdtempSync(join(tmpdir(), 'mw-sweep-'))
  onTestFinished(() => rmSync(path, { recursive: true, force: true }))
  return path
}

const pipeline = (more: Partial<PipelineOptions> = {}) =>
  new DistributedTrainingPipeline({
    ...{ agent: driver, tasks: lightsTasks(60), rollouts: 4, tasksPerUpdate: 4, tasksPerEpoch: 8, epochs: 1 },
    ...{ evaluate: { testRollouts: 1 }, workerNum: 2, store: false },
    ...more,
  })

/** What the store says of each training: its updates, and the sessions that it took. */
function stored(store: string) {
  using db = openForReading(join(store, 'store.sqlite'))
  return db
    .prepare(
      `SELECT t.id, t.sessions, (SELECT count(*) FROM _updates u WHERE u.training = t.training) AS updates,
       (SELECT curve_sha FROM _updates u WHERE u.training = t.training ORDER BY number DESC LIMIT 1) AS digest
       FROM _trainings t ORDER BY t.training`,
    )
    .all() as { id: string; sessions: number; updates: number; digest: string }[]
}

async function results(grid: SweepGrid, more: Partial<PipelineOptions> = {}): Promise<SweepResult[]> {
  return all(pipeline(more).sweep(grid))
}

async function all(sweep: AsyncIterable<SweepResult>): Promise<SweepResult[]> {
  const seen: SweepResult[] = []
  for await (const result of sweep) seen.push(result)
  return seen
}

describe('a sweep', { timeout: 300_000 }, () => {
  test('trains every combination with every seed, and says which point is best by validation', async () => {
    const store = newStore()
    const tasks = (function* () {
      yield* lightsTasks(60)
    })()
    const sweep = pipeline({ store, runId: 'hunt', tasks, seed: 3 }).sweep({ lr: [0.01, 0.5], rollouts: [2], seeds: 2 })
    const seen = await all(sweep)
    expect(seen.map(({ id }) => id)).toEqual([
      ...['hunt.lr0.01.rollouts2.seed3', 'hunt.lr0.01.rollouts2.seed4'],
      ...['hunt.lr0.5.rollouts2.seed3', 'hunt.lr0.5.rollouts2.seed4'],
    ])
    expect(seen[2]).toMatchObject({ values: { lr: 0.5, rollouts: 2 }, seed: 3, restored: false, epochs: 1, updates: 2 })
    expect(new Set(seen.map(({ digest }) => digest)).size).toBe(4)
    expect(stored(store).map(({ id, digest }) => ({ id, digest }))).toEqual(
      seen.map(({ id, digest }) => ({ id, digest })),
    )
    const { points, best, trainings, restored } = await sweep.summary()
    expect({ trainings, restored }).toEqual({ trainings: 4, restored: 0 })
    expect(points.map(({ label, finished }) => ({ label, finished }))).toEqual([
      { label: 'lr0.01.rollouts2', finished: 2 },
      { label: 'lr0.5.rollouts2', finished: 2 },
    ])
    const [first, second] = points as [(typeof points)[0], (typeof points)[0]]
    expect(best).toBe(second.validation!.value > first.validation!.value ? second : first)
  })

  test('runs nothing again that is finished, and takes more values and seeds', async () => {
    const store = newStore()
    const place = { store, runId: 'hunt' }
    const before = await results({ lr: [0.1], seeds: 1 }, place)
    const after = await results({ lr: [0.1, 0.2], seeds: [0, 7] }, place)
    expect(after.map(({ id, restored }) => [id, restored])).toEqual([
      ['hunt.lr0.1.seed0', true],
      ['hunt.lr0.1.seed7', false],
      ['hunt.lr0.2.seed0', false],
      ['hunt.lr0.2.seed7', false],
    ])
    expect({ ...after[0], restored: false }).toEqual(before[0])
    expect(stored(store).every(({ sessions }) => sessions === 1)).toBe(true)
    // Longer ones go on.
    const longer = await results({ lr: [0.1], seeds: 1, epochs: 2 }, place)
    expect(longer).toMatchObject([{ restored: false, epochs: 2, updates: 4 }])
    // Other settings of the pipeline make other trainings of them.
    await expect(results({ lr: [0.1], seeds: 1 }, { ...place, tasksPerUpdate: 8 })).rejects.toThrow(
      /hunt\.lr0\.1\.seed0.*different settings:\n {2}tasksPerUpdate: 4 before, 8 now/,
    )
  })

  test(`killed at any moment, it goes on, and comes to the same curves (seed ${SEED})`, async () => {
    const grid = JSON.stringify({ lr: [0.1, 0.3], seeds: 2, epochs: 2 })
    const start = (store: string) => {
      const child = spawn(process.execPath, [SCRIPT, store, grid], { stdio: ['ignore', 'pipe', 'inherit'] })
      onTestFinished(() => void child.kill('SIGKILL'))
      let stdout = ''
      child.stdout.setEncoding('utf8').on('data', (text: string) => {
        stdout += text
      })
      const exited = new Promise<number | string | null>((done) =>
        child.once('close', (code, signal) => done(signal ?? code)),
      )
      return {
        child,
        exited,
        lines: () =>
          stdout
            .trimEnd()
            .split('\n')
            .map((line) => JSON.parse(line)),
      }
    }
    const undisturbed = newStore()
    const whole = start(undisturbed)
    expect(await whole.exited).toBe(0)
    const store = newStore()
    const random = seeded(SEED)
    const kills = share(2, 6)
    for (let kill = 0; kill < kills; kill++) {
      const { child, exited } = start(store)
      await Promise.race([exited, sleep(1000 + random() * 3000)])
      child.kill('SIGKILL')
      await exited
    }
    const last = start(store)
    expect(await last.exited).toBe(0)
    const curves = (of: string) => stored(of).map(({ id, digest, updates }) => ({ id, digest, updates }))
    expect(curves(store)).toEqual(curves(undisturbed))
    const { restored: _, ...summary } = last.lines().at(-1)
    const { restored: __, ...expected } = whole.lines().at(-1)
    expect(summary).toEqual(expected)
  })

  test('goes on where a learner fails, and does not call such a point the best', async () => {
    const learner = { module: LEARNERS, export: 'troubledLearner', options: { at: 3, how: 'nan' } }
    const sweep = pipeline({ learner }).sweep({ tasksPerEpoch: [16, 8] })
    const seen = await all(sweep)
    expect(seen.map(({ label, error, updates }) => [label, error?.code, updates])).toEqual([
      ['tasksPerEpoch16', 'LEARNER_FAILED', 2],
      ['tasksPerEpoch8', undefined, 2],
    ])
    expect((await sweep.summary()).best).toMatchObject({ label: 'tasksPerEpoch8', finished: 1, failed: 0 })
  })
})

test('a sweep is refused before anything starts if something is wrong with it', () => {
  const refused = (grid: unknown, message: string) => {
    expect(() => pipeline().sweep(grid as SweepGrid)).toThrow(
      expect.objectContaining({ code: 'CONFIG_INVALID', message: expect.stringContaining(message) }),
    )
  }
  refused({ lrr: [0.1] }, "unknown key 'lrr', did you mean 'lr'?; allowed: advantages, algorithm,")
  refused({ workerNum: [1, 2] }, "unknown key 'workerNum'")
  refused({ lr: 0.1 }, '`lr` must be a list of values to try, such as [0.02, 0.05]')
  refused({ lr: [] }, '`lr` must be a list')
  refused({ lr: [0.1, 0.1] }, '`lr` contains 0.1 twice')
  refused({ lr: [0.1, -1] }, '`lr` of the algorithm must be a number above 0')
  refused({ rollouts: [4, 0] }, '`rollouts` must be at least 1')
  refused({ seeds: 0 }, '`seeds` must be a number of seeds')
  refused({ seeds: [1, 1] }, '`seeds` must be')
  refused({ epochs: [1, 2] }, '`epochs` must be a whole number of at least 1, not a list')
  refused([0.1], 'the grid must be an object of lists')
})

test('names values as ids can have them', () => {
  const labels = (grid: SweepGrid) => pointsOf(grid).map(({ label }) => label)
  expect(labels({ lr: [1e-7, 0.05] })).toEqual(['lr1e-7', 'lr0.05'])
  expect(labels({ overlap: [true, false], control: ['off'] })).toEqual([
    'overlaptrue.controloff',
    'overlapfalse.controloff',
  ])
  expect(labels({ advantages: [{ name: 'grpo' }, { name: 'rloo' }] })).toEqual(['advantagesgrpo', 'advantagesrloo'])
  expect(labels({ advantages: [{ name: 'grpo' }, { name: 'grpo', std: false }] })).toEqual([
    'advantages1',
    'advantages2',
  ])
})

test('the mean of a point is that over its seeds, with an interval', () => {
  const point = (label: string) => ({ label, values: {} })
  const result = (label: string, share: number, more: Partial<SweepResult> = {}): SweepResult => {
    const figures = { success: { value: share, low: 0, high: 1 }, reward: null, withoutResult: 0 }
    return {
      ...{ id: label, label, values: {}, seed: 0, restored: false, epochs: 1, updates: 1, best: 1, digest: '' },
      ...{ validation: figures, test: { ...figures, success: { value: 1 - share, low: 0, high: 1 } }, ...more },
    }
  }
  const some = [
    ...[0.7, 0.8, 0.9].map((share) => result('a', share)),
    ...[0.95, 0.85, 0.9].map((share) => result('b', share)),
    ...[0.99, 1, 1].map((share, place) =>
      result('c', share, place === 0 ? { error: { code: 'LEARNER_FAILED', message: '' } } : {}),
    ),
  ]
  const { points, best } = summarizeSweep('s', [point('a'), point('b'), point('c')], some)
  // t with two degrees of freedom at .975 is 4.303.
  const half = (4.303 * 0.05) / Math.sqrt(3)
  expect(points[1]!.validation!.value).toBeCloseTo(0.9)
  expect(points[1]!.validation!.low).toBeCloseTo(0.9 - half, 3)
  expect(points[1]!.validation!.high).toBeCloseTo(1)
  // By validation: by the test it would be a. Of c, a training failed.
  expect(best?.label).toBe('b')
  // Two seeds that are all the same do not make it certain.
  expect(points[2]).toMatchObject({ finished: 2, failed: 1, validation: { value: 1, high: 1 } })
  expect(points[2]!.validation!.low).toBeLessThan(0.5)
})
