import { closeSync, mkdtempSync, openSync, readdirSync, rmSync, writeSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { Runners } from 'manyworlds'
import { numeric } from 'manyworlds/grade'
import { DistributedTrainingPipeline, type EpochReport, type PipelineOptions } from 'manyworlds/train'
import { afterAll, expect, onTestFinished, test } from 'vitest'
import { openForReading } from '../../dist/store/open-for-reading.js'
import { seeded } from '../../src/random.ts'
import { driver, lightsTasks } from '../agents/lights.ts'
import { itMounts, ownDisk } from '../store/own-disk.ts'
import { SEED, share } from '../support/storm.ts'
import { type Driver, startDriver } from './start-driver.ts'

afterAll(() => Runners.shutdown())

const SCRIPT = fileURLToPath(new URL('drivers/train-lights.ts', import.meta.url))
const EPOCHS = 3

const newStore = () => {
  const path = mkdtempSync(join(tmpdir(), 'mw-training-'))
  onTestFinished(() => rmSync(path, { recursive: true, force: true }))
  return path
}

interface Line {
  readonly epoch?: number
  readonly digest?: string
  readonly begun?: true
  readonly test?: unknown
  readonly ms?: number
}

const start = (store: string, settings: object = {}, epochs = EPOCHS): Driver<Line> =>
  startDriver([SCRIPT, store, 'lights', String(epochs), JSON.stringify(settings)])

/** Runs it to its end. */
async function finish(store: string, settings: object = {}, epochs = EPOCHS) {
  const driver = start(store, settings, epochs)
  expect(await driver.exited, driver.stderr()).toBe(0)
  return driver.lines()
}

/** What is in the store: how many episodes ended, how many attempts at them, and how often a task of a run has more than one response. */
function stored(store: string) {
  const db = openForReading(join(store, 'store.sqlite'))
  try {
    const one = (sql: string) => (db.prepare(sql).get() as { n: number }).n
    return {
      episodes: one('SELECT count(*) AS n FROM _tasks WHERE place IS NOT NULL'),
      responses: one('SELECT count(*) AS n FROM _attempts WHERE role = 0'),
      attempts: one('SELECT count(*) AS n FROM _attempts'),
      twice: one(
        'SELECT count(*) AS n FROM (SELECT task FROM _attempts WHERE role = 0 GROUP BY task HAVING count(*) > 1)',
      ),
      collected: one("SELECT count(*) AS n FROM steps WHERE run_id GLOB 'lights.u*'"),
      updates: one('SELECT count(*) AS n FROM _updates'),
      plans: one('SELECT count(*) AS n FROM _plans'),
    }
  } finally {
    db.close()
  }
}

test(`killed at any moment and resumed, it comes to the same curve, and collects nothing twice (seed ${SEED})`, {
  timeout: 600_000,
}, async () => {
  const undisturbed = newStore()
  const whole = await finish(undisturbed)
  const wholeMs = whole.at(-1)!.ms!
  const digest = whole.at(-1)!.digest
  const expected = stored(undisturbed)
  expect(expected).toMatchObject({ updates: 9, plans: 9, twice: 0 })
  expect(whole.at(-1)!.test).not.toBeNull()

  const random = seeded(SEED)
  const kills = share(2, 8)
  const store = newStore()
  for (let kill = 0; kill < kills; kill++) {
    const driver = start(store)
    const gone = driver.exited
    // Any moment from the first line of the training on, whatever the load is.
    await expect.poll(driver.lines, { timeout: 60_000 }).not.toEqual([])
    await Promise.race([gone, sleep(random() * 0.4 * wholeMs)])
    driver.child.kill('SIGKILL')
    await gone
  }
  const lines = await finish(store)
  const last = lines.at(-1)
  // All of it may have been done before the last kill.
  if (last?.digest !== undefined) expect(last.digest).toBe(digest)
  expect(curve(store)).toBe(digest)
  const { attempts, ...counts } = stored(store)
  expect(counts).toEqual({ ...counts, ...expected, attempts: undefined })
  // What was running when the driver was killed has no response: nothing was answered twice.
  expect(attempts).toBe(counts.responses)
  expect(readdirSync(store).filter((name) => name.includes('owner'))).toEqual([])
})

function curve(store: string): string {
  const db = openForReading(join(store, 'store.sqlite'))
  try {
    return (db.prepare('SELECT curve_sha AS sha FROM _updates ORDER BY number DESC LIMIT 1').get() as { sha: string })
      .sha
  } finally {
    db.close()
  }
}

const options = (store: string, more: Partial<PipelineOptions> = {}): PipelineOptions => ({
  ...{ agent: driver, tasks: lightsTasks(60), store, runId: 'lights', resume: 'auto', workerNum: 2, seed: 5 },
  ...{ rollouts: 4, tasksPerUpdate: 4, tasksPerEpoch: 12 },
  ...more,
})

async function train(given: PipelineOptions, epochs: number): Promise<EpochReport[]> {
  const reports: EpochReport[] = []
  for await (const report of new DistributedTrainingPipeline(given).train({ epochs })) reports.push(report)
  return reports
}

test('a training goes on for more epochs, and comes to the curve that it would have had', async () => {
  const [once, twice] = [newStore(), newStore()]
  const whole = await train(options(once), 3)
  await train(options(twice), 1)
  const rest = await train(options(twice), 3)
  expect(rest.map(({ epoch }) => epoch)).toEqual([2, 3])
  expect(rest.at(-1)!.digest).toBe(whole.at(-1)!.digest)
  // There is nothing left to do: it says what came of it.
  const again = await train(options(twice), 3)
  expect(again).toMatchObject([{ epoch: 3, digest: whole.at(-1)!.digest, test: whole.at(-1)!.test }])
})

test('stopped while it collects, it goes on with the tasks of that update, and comes to the same curve', async () => {
  const [once, twice] = [newStore(), newStore()]
  const whole = await train(options(once), 1)
  const abort = new AbortController()
  const episode = (runId: string) => void (runId === 'lights.u00001' && abort.abort())
  const stopped = train(options(twice, { signal: abort.signal, progress: () => ({ episode }) }), 1)
  await expect(stopped).rejects.toMatchObject({ code: 'TRAINING_STOPPED' })
  expect(stored(twice)).toMatchObject({ plans: 2, updates: 1 })
  const rest = await train(options(twice), 1)
  expect(rest.at(-1)!.digest).toBe(whole.at(-1)!.digest)
  expect(stored(twice)).toMatchObject({ plans: 3, updates: 3, twice: 0 })
})

test('other settings are refused with a list of what changed; engine, workers and how often it is evaluated may change', async () => {
  const store = newStore()
  await train(options(store), 1)
  const changed = train(options(store, { seed: 6, algorithm: { lr: 0.2 }, tasks: lightsTasks(61) }), 2)
  await expect(changed).rejects.toMatchObject({
    code: 'TRAINING_CHANGED',
    message: expect.stringMatching(
      /training 'lights' was started with different settings:\n {2}seed: 5 before, 6 now\n {2}algorithm.lr: 0.05 before, 0.2 now\n {2}tasks.train: \d+ before/,
    ),
  })
  await expect(train(options(store, { evaluate: { mode: 'greedy' } }), 2)).rejects.toMatchObject({
    code: 'TRAINING_CHANGED',
    message: expect.stringMatching(/evaluate.mode: "sample" before, "greedy" now/),
  })
  const more = { workerNum: 1, concurrency: 2, evaluate: { every: 2 }, tasksPerEpoch: 16 } as const
  expect(await train(options(store, more), 2)).toHaveLength(2)
})

test('other solutions, metadata or graders are refused by name', async () => {
  const store = newStore()
  const tasks = (more: object) => lightsTasks(60).map((task) => ({ ...task, groundTruth: 1, ...more }))
  const [lenient, strict] = [1, 2].map((limit) => numeric({ absolute: limit }))
  await train(options(store, { tasks: tasks({}), grade: lenient! }), 1).catch(() => {})
  const changed = async (more: object, grade = lenient!) => {
    const error = await train(options(store, { tasks: tasks(more), grade }), 1).catch((thrown: unknown) => thrown)
    expect(error).toMatchObject({ code: 'TRAINING_CHANGED' })
    return (error as Error).message
      .split('\n')
      .slice(1, -1)
      .map((line) => line.trim().split(':')[0])
  }
  expect(await changed({ groundTruth: 2 })).toEqual(['tasks.groundTruths'])
  expect(await changed({ metadata: { level: 3 } })).toEqual(['tasks.metadata'])
  expect(await changed({}, strict)).toEqual(['tasks.graders'])
  // The same question for a person, but another one for the agent.
  const upper = lightsTasks(60).map(({ input, ...task }) => ({
    ...task,
    input: { ...input, note: 'A' },
    groundTruth: 1,
  }))
  const other = newStore()
  await train(options(other, { tasks: upper }), 1)
  const lower = upper.map(({ input, ...task }) => ({ ...task, input: { ...input, note: 'a' } }))
  await expect(train(options(other, { tasks: lower }), 1)).rejects.toThrow('tasks.inputs: ')
})

test('one process trains at a time; another is told who does', async () => {
  const store = newStore()
  await using pipeline = new DistributedTrainingPipeline(options(store))
  await pipeline.trainEpoch()
  const other = start(store)
  expect(await other.exited).toBe(1)
  expect(other.stderr()).toMatch(/RUN_LOCKED/)
  expect((await pipeline.trainEpoch()).epoch).toBe(2)
})

test('a name that is taken is refused, and so is one that is not there', async () => {
  const store = newStore()
  const { resume: _, ...fresh } = options(store)
  await train(fresh, 1)
  await expect(train(fresh, 1)).rejects.toMatchObject({ code: 'RUN_EXISTS' })
  await expect(train({ ...fresh, runId: undefined as never, resume: 'other' }, 1)).rejects.toMatchObject({
    code: 'RUN_NOT_FOUND',
  })
})

itMounts(
  'a full disk stops it with one error; the last version stays, and with room it goes on to the same curve',
  async () => {
    const whole = await train(options(newStore()), 4)
    const { path } = ownDisk('size=12m')
    const filler = join(path, 'filler')
    const store = join(path, 'store')
    const pipeline = new DistributedTrainingPipeline(options(store))
    await pipeline.trainEpoch()
    fill(filler)
    const error = await pipeline.trainEpoch().catch((thrown: unknown) => thrown)
    expect(error).toMatchObject({ code: 'STORE_FULL', message: expect.stringMatching(/version \d+ was kept/) })
    rmSync(filler)
    const rest = await train(options(store), 4)
    expect(rest.at(-1)!.digest).toBe(whole.at(-1)!.digest)
  },
)

/** Takes what is left of a disk. */
function fill(path: string): void {
  const file = openSync(path, 'w')
  try {
    for (let size = 1 << 20; size >= 1 << 10; ) {
      try {
        writeSync(file, Buffer.alloc(size))
      } catch {
        size >>= 1
      }
    }
  } finally {
    closeSync(file)
  }
}

test('a script that forgets to close its training leaves it finished', async () => {
  const store = newStore()
  await finish(store, { justOneEpoch: true })
  const db = openForReading(join(store, 'store.sqlite'))
  expect(db.prepare('SELECT ending FROM _trainings').all()).toEqual([{ ending: 'finished' }])
  db.close()
})

test('keeps the steps of some trajectories only, and comes to the same curve', async () => {
  const [all, some] = [newStore(), newStore()]
  const whole = await train(options(all), 3)
  await train(options(some, { keepTrajectories: 4 }), 1)
  const thinned = await train(options(some, { keepTrajectories: 4 }), 3)
  expect(thinned.at(-1)!.digest).toBe(whole.at(-1)!.digest)
  const [before, after] = [stored(all), stored(some)]
  expect(after).toMatchObject({ updates: before.updates, plans: before.plans, twice: 0 })
  expect(after.collected).toBeLessThan(before.collected / 2)
  expect(after.collected).toBeGreaterThan(0)
})
