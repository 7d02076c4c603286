import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { resolve } from 'node:path'
import { Runners } from 'manyworlds'
import { DistributedTrainingPipeline, type EpochReport, type PipelineOptions } from 'manyworlds/train'
import { afterAll, describe, expect, onTestFinished, test } from 'vitest'
import { deskTasks } from '../../examples/tool-desk/desk.ts'
import { leverTasks, puller } from '../agents/levers.ts'
import { trainedClerk } from '../agents/trained.ts'
import { query, storeFolder } from '../store/store-folder.ts'
import { signal } from '../support/process-tree.ts'
import { runScript } from '../support/run-script.ts'
import { stormTest } from '../support/storm.ts'

afterAll(() => Runners.shutdown())

const TIMEOUT_MS = 300_000
const SLOW = { timeout: TIMEOUT_MS }
const LEVERS = {
  ...{ agent: puller, tasks: { train: leverTasks(40) }, workerNum: 2, concurrency: 8, seed: 3 },
  ...{ rollouts: 4, tasksPerUpdate: 8, tasksPerEpoch: 80, evaluate: false, algorithm: { lr: 0.1 } },
} as const satisfies PipelineOptions

async function train(options: PipelineOptions, epochs: number): Promise<EpochReport[]> {
  const reports: EpochReport[] = []
  for await (const report of new DistributedTrainingPipeline(options).train({ epochs })) reports.push(report)
  return reports
}

interface Update {
  readonly number: number
  readonly versionIn: number
  readonly staleness: { readonly mean: number; readonly max: number } | null
  readonly members: readonly (readonly [task: string, rollout: number, digest: string | null])[]
}

function updatesOf(file: string): Update[] {
  return query(file, 'SELECT number, version_in, report, members FROM updates ORDER BY number').map(
    ({ number, version_in, report, members }) => ({
      ...{ number: number as number, versionIn: version_in as number },
      staleness: (JSON.parse(report as string) as Update).staleness,
      members: JSON.parse(members as string) as Update['members'],
    }),
  )
}

describe('while collection goes on', () => {
  stormTest('a policy learns the tool desk', SLOW, async () => {
    const tasks = { train: deskTasks({ part: 'train', count: 3200, seed: 1 }).map((input) => ({ input })) }
    const options = { agent: trainedClerk, tasks, workerNum: 2, seed: 1, store: false, evaluate: false } as const
    const reports = await train({ ...options, overlap: true, tasksPerEpoch: 640 }, 5)
    expect(reports[0]!.successRate).toBeLessThan(0.1)
    expect(reports.at(-1)!.successRate).toBeGreaterThan(0.8)
    expect(reports.at(-1)).toMatchObject({ updates: 200, staleness: { max: 1 } })
  })

  test.each([1, 3])(
    'no batch is older than maxStaleness: %i',
    async (maxStaleness) => {
      const { store, file } = storeFolder()
      const told = new Map<string, number>()
      const progress = () => ({
        run: (_: string, episodes: number, runId: string) => void told.set(runId, episodes),
        episode: (runId: string) => void told.set(runId, told.get(runId)! - 1),
      })
      const reports = await train({ ...LEVERS, store, overlap: { maxStaleness }, progress }, 3)
      // Whoever watches can tell the runs apart that go on at a time.
      expect([...told.values()]).toEqual(Array.from({ length: 30 }, () => 0))
      const updates = updatesOf(file(''))
      expect(updates.map(({ number }) => number)).toEqual(Array.from({ length: 30 }, (_, number) => number))
      // Plans are for versions that were there: some were collected ahead, and none further than allowed.
      const oldest = Math.max(...updates.map(({ staleness }) => staleness?.max ?? 0))
      expect(oldest).toBeGreaterThanOrEqual(1)
      expect(oldest).toBeLessThanOrEqual(maxStaleness)
      expect(reports.at(-1)!.successRate).toBeGreaterThan(0.5)
      // Every update has exactly its own episodes, and every episode is in one update.
      for (const { members } of updates) expect(members.length).toBe(32)
      expect(query(file(''), 'SELECT count(*) AS n FROM responses')).toEqual([{ n: 30 * 32 }])
      const weights = query(file(''), 'SELECT count(*) AS n FROM versions WHERE is_kept = 1')
      // The first, the last and those that acted lately: not one for every update.
      expect(weights[0]!.n).toBeLessThanOrEqual(maxStaleness + 3)
    },
    TIMEOUT_MS,
  )

  test('a training without variance in any group comes to its end, and says what is wrong', async () => {
    const tasks = { train: leverTasks(16, 1) }
    const options = { ...LEVERS, tasks, tasksPerEpoch: 64, store: false, overlap: { maxStaleness: 2 } } as const
    const [report] = await train(options, 1)
    expect(report).toMatchObject({ updates: 8, version: 0, skippedGroups: 64, staleness: null })
    expect(report!.alarms.join()).toContain('nothing was learned')
  })
})

test(
  'with maxStaleness 0 the curve is that of a training that takes turns',
  async () => {
    const alone = await train({ ...LEVERS, store: false }, 2)
    const overlapped = await train({ ...LEVERS, store: false, overlap: { maxStaleness: 0 } }, 2)
    expect(overlapped.map(({ digest }) => digest)).toEqual(alone.map(({ digest }) => digest))
  },
  TIMEOUT_MS,
)

test(
  'whoever leaves in the middle finds the plans that were open when going on',
  async () => {
    const { store, file } = storeFolder()
    const options = { ...LEVERS, store, runId: 't', resume: 'auto', overlap: { maxStaleness: 2 } } as const
    for await (const { epoch } of new DistributedTrainingPipeline(options).train({ epochs: 3 })) if (epoch === 1) break
    const planned = query(file(''), 'SELECT number, version, tasks FROM plans ORDER BY number')
    const open = query(file(''), 'SELECT count(*) AS n FROM plans WHERE is_done = 0')[0]!.n as number
    expect(open).toBeGreaterThan(0)
    expect(open).toBeLessThanOrEqual(3)
    await train(options, 3)
    const after = query(file(''), 'SELECT number, version, tasks FROM plans ORDER BY number')
    expect(after.slice(0, planned.length)).toEqual(planned)
    expect(updatesOf(file('')).length).toBe(30)
    // Each pass goes through all tasks once, also where it was interrupted.
    const drawn = after.map(({ tasks }) => JSON.parse(tasks as string) as string[])
    for (let pass = 0; pass < 6; pass++) expect(new Set(drawn.slice(pass * 5, pass * 5 + 5).flat()).size).toBe(40)
  },
  TIMEOUT_MS,
)

stormTest(
  'a driver that is killed again and again goes on, and collects nothing twice that was stored',
  SLOW,
  async () => {
    const { store, file } = storeFolder()
    const script = resolve(import.meta.dirname, 'drivers/train-levers.ts')
    const done = () => {
      try {
        return query(file(''), 'SELECT count(*) AS n FROM updates')[0]!.n as number
      } catch {
        return 0
      }
    }
    const stored = () => query(file(''), 'SELECT run_id, id, ended_at, digest FROM responses ORDER BY run_id, id')
    let before: ReturnType<typeof stored> = []
    for (const updates of [1, 6, 12, 19]) {
      const driver = spawn(process.execPath, [script, store, '3'], { env: { ...process.env, VITEST: undefined } })
      onTestFinished(() => void driver.kill('SIGKILL'))
      // It may be done before it is killed, if this test is late.
      const gone = once(driver, 'close')
      await expect.poll(done, { timeout: 120_000, interval: 10 }).toBeGreaterThanOrEqual(updates)
      driver.kill('SIGKILL')
      await gone
      const now = stored()
      expect(now).toEqual(expect.arrayContaining(before))
      before = now
    }
    const { code, stderr } = await runScript(script, { args: [store, '3'] })
    expect(code, stderr).toBe(0)
    const after = stored()
    expect(after).toEqual(expect.arrayContaining(before))
    expect(after.length).toBe(30 * 32)
    const updates = updatesOf(file(''))
    expect(updates.map(({ number }) => number)).toEqual(Array.from({ length: 30 }, (_, number) => number))
    for (const { staleness } of updates) expect(staleness?.max ?? 0).toBeLessThanOrEqual(2)
    // What was learned from is what is stored.
    const digests = new Map(after.map(({ run_id, id, digest }) => [`${run_id} ${id}`, digest]))
    for (const { number, members } of updates)
      for (const [task, rollout, digest] of members) {
        const id = rollout === 1 ? task : `${task}@${rollout}`
        expect(digests.get(`t.u${String(number).padStart(5, '0')} ${id}`)).toBe(digest)
      }
  },
)

test(
  'workers that are killed cost nothing but time',
  async () => {
    const { store, file } = storeFolder()
    const pipeline = new DistributedTrainingPipeline({ ...LEVERS, store, overlap: { maxStaleness: 2 } })
    const killed = new Set<unknown>()
    const reports: EpochReport[] = []
    for await (const report of pipeline.train({ epochs: 4 })) {
      reports.push(report)
      // One at a time: who dies a second time, alone in a worker, would be taken for the cause.
      const victim = query(file(''), 'SELECT pid FROM workers').find(({ pid }) => !killed.has(pid))
      if (victim === undefined) continue
      killed.add(victim.pid)
      signal(victim.pid as number, 'SIGKILL')
    }
    expect(killed.size).toBeGreaterThanOrEqual(2)
    expect(reports.map(({ trajectories, dropped }) => [trajectories, dropped])).toEqual(reports.map(() => [320, 0]))
    for (const { staleness } of updatesOf(file(''))) expect(staleness?.max ?? 0).toBeLessThanOrEqual(2)
  },
  TIMEOUT_MS,
)

describe('when it ends in the middle, nothing of what is collected ahead goes on', () => {
  const stillOpen = (file: string) => query(file, 'SELECT count(*) AS n FROM sessions WHERE ended_at IS NULL')
  const overlapped = { ...LEVERS, overlap: { maxStaleness: 3 } } as const

  test('because the learner fails: the last good version stays', async () => {
    const { store, file } = storeFolder()
    const learner = { module: new URL('../agents/levers.ts', import.meta.url), export: 'tiredLearner' }
    await expect(train({ ...overlapped, algorithm: {}, learner, store }, 3)).rejects.toMatchObject({
      code: 'LEARNER_FAILED',
      message: expect.stringMatching(/failed at update 4; version 4 was kept: .*the learner has had enough/),
    })
    expect(stillOpen(file(''))).toEqual([{ n: 0 }])
    expect(query(file(''), 'SELECT ending, updates FROM trainings')).toEqual([{ ending: 'failed', updates: 4 }])
  })

  test('because of a signal', async () => {
    const { store, file } = storeFolder()
    const abort = new AbortController()
    const progress = () => ({ update: () => abort.abort() })
    await expect(train({ ...overlapped, store, signal: abort.signal, progress }, 100)).rejects.toMatchObject({
      code: 'TRAINING_STOPPED',
    })
    expect(stillOpen(file(''))).toEqual([{ n: 0 }])
    expect(query(file(''), 'SELECT ending FROM trainings')).toEqual([{ ending: 'interrupted' }])
  })
})

test.each([
  [{ maxStaleness: -1 }, 'maxStaleness'],
  [{ maxStaleness: 0.5 }, 'maxStaleness'],
  [{ maxStaleness: 1, concurrency: 3 }, 'overlap'],
  ['yes', 'overlap'],
])('overlap: %j is refused', (overlap, word) => {
  expect(() => new DistributedTrainingPipeline({ ...LEVERS, overlap: overlap as never })).toThrow(word)
})
