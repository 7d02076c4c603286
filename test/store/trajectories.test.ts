import { rmSync } from 'node:fs'
import { Runners } from 'manyworlds'
import { checkTrajectory, digestOf, RunFile, Trajectory } from 'manyworlds/runs'
import { afterAll, describe, expect, test } from 'vitest'
import { team } from '../agents/branches.ts'
import { chief, inspector, party, roamer, spreadParty } from '../agents/experience.ts'
import { pair, walker } from '../agents/worlds.ts'
import { query, storeFolder } from './store-folder.ts'

afterAll(() => Runners.shutdown())
const plain = (trajectory: Trajectory) => JSON.parse(JSON.stringify(trajectory))

describe('await response.toTrajectory()', () => {
  test('gives the whole of what a task did, as the store has it', async () => {
    const { store } = storeFolder()
    const metadata = { split: 'validation', level: 3 }
    const task = roamer.task({ steps: 4 }, { id: 'q7', metadata })
    const responses = await Runners.runTask([task], { store, runId: 'r', seed: 5, rollouts: 2 })
    const trajectory = await responses.get('q7@2')!.toTrajectory()
    expect(trajectory).toBeInstanceOf(Trajectory)
    expect(trajectory).toMatchObject({
      ...{ schema: 2, id: 'q7@2', run: 'r', task: 'q7', agent: 'roamer', split: 'validation', rollout: 2, seed: 5 },
      ...{ group: { id: 'q7', size: 2 }, visit: 0, attempt: 1, input: { steps: 4 }, meta: metadata },
      ...{ ending: { kind: 'terminated' }, episode: null, grade: null, digest: responses.get('q7@2')!.digest },
      branches: [{ id: 0, agent: 'roamer', parent: null }],
    })
    expect(trajectory.steps).toEqual(responses.get('q7@2')!.trajectory)
    expect(trajectory.answer).toBe(responses.get('q7@2')!.answer)
    expect(trajectory.ms).toBe(responses.get('q7@2')!.timing.runMs)
    expect(checkTrajectory(trajectory)).toEqual([])
    expect(Trajectory.fromJSON(plain(trajectory))).toStrictEqual(trajectory)
  })

  test('has the branches of a group', async () => {
    const { store } = storeFolder()
    const trajectory = await (await Runners.runTask(team.task([]), { store })).toTrajectory()
    expect(trajectory.branches.map(({ id, agent }) => [id, agent])).toEqual([
      ...[
        [0, 'team'],
        [1, 'pipeline'],
        [2, 'reader'],
        [3, 'writer'],
        [4, 'critic'],
        [5, 'inner'],
        [6, 'left'],
      ],
      ...[
        [7, 'right'],
        [12, 'critic'],
        [14, 'left'],
        [20, 'critic'],
        [22, 'left'],
      ],
    ])
    expect(checkTrajectory(trajectory)).toEqual([])
  })

  test('has sub-tasks as branches, also those of sub-tasks, and only those of the attempt that counts', async () => {
    const { store } = storeFolder()
    const config = { store, maxAttempts: 2, backoffMs: 1 }
    const response = await Runners.runTask(chief.task({ fails: 1 }, { id: 'c' }), config)
    const trajectory = await response.toTrajectory()
    expect(checkTrajectory(trajectory)).toEqual([])
    expect(trajectory.branches.map(({ agent, task, parent }) => [agent, task, parent?.why, parent?.branch])).toEqual([
      ['chief', undefined, undefined, undefined],
      ['spread-party', 'c/look-2', 'subtask', 0],
      ['north', 'c/look-2/north', 'subtask', 1],
      ['south', 'c/look-2/south', 'subtask', 1],
      ['roamer', 'c/walk', 'subtask', 0],
    ])
    const counts = Object.groupBy(trajectory.steps, ({ branch = 0 }) => branch)
    expect(Object.values(counts).map((steps) => steps!.length)).toEqual([2, 3, 3, 2])
    expect(trajectory.steps.slice(0, 2)).toEqual(response.trajectory)
    expect(trajectory.branches.at(-1)).toMatchObject({ end: { ending: { kind: 'terminated' }, reward: null } })
  })

  test('has how an episode ended; those of sub-agents are with their branches', async () => {
    const { store } = storeFolder()
    const tasks = [walker.task({ width: 3 }, { id: 'alone' }), pair.task({ width: 3 }, { id: 'pair' })]
    const responses = await Runners.runTask(tasks, { store, seed: 4 })
    const alone = await responses.get('alone')!.toTrajectory()
    const { ending, finalObservation, reward, success } = responses.get('alone')!.episode!
    expect(alone).toMatchObject({ ending, finalObservation, episode: { reward, success } })
    expect(ending).toEqual({ kind: 'terminated' })
    const both = await responses.get('pair')!.toTrajectory()
    expect(both).toMatchObject({
      ...{ ending: { kind: 'terminated' }, episode: null, digest: expect.any(String) },
      branches: [
        { id: 0, agent: 'pair' },
        { id: 1, agent: 'walker', end: { ending: { kind: 'terminated' }, success: expect.any(Boolean) } },
        { id: 2, agent: 'rightwards', end: { ending: { kind: 'terminated' }, finalObservation: { at: 3 }, reward: 1 } },
      ],
    })
    for (const trajectory of [alone, both]) expect(checkTrajectory(trajectory)).toEqual([])
  })

  test('says what failed, and is there for what failed', async () => {
    const { store } = storeFolder()
    const response = await Runners.runTask(chief.task({ fails: 1 }), { store })
    const trajectory = await response.toTrajectory()
    expect(trajectory).toMatchObject({ ending: { kind: 'failed', error: { code: 'TASK_THREW', message: 'not yet' } } })
    expect(trajectory.digest).toBeNull()
    expect('answer' in trajectory).toBe(false)
    expect(trajectory.branches).toHaveLength(5)
    expect(checkTrajectory(trajectory)).toEqual([])
  })

  test('is of what the response carries, where there is no store', async () => {
    const task = chief.task({ fails: 0 }, { id: 'c', metadata: { level: 1 }, groupId: 'g' })
    const trajectory = await (await Runners.runTask(task, { store: false, runId: 'r', seed: 2 })).toTrajectory()
    expect(trajectory).toMatchObject({ run: 'r', seed: 2, group: { id: 'g', size: null }, meta: {}, split: null })
    expect(trajectory.steps).toHaveLength(2)
    expect(trajectory.branches).toHaveLength(1)
    expect('input' in trajectory).toBe(false)
    expect(checkTrajectory(trajectory)).toEqual([])
  })

  test('works in a worker, for the sub-tasks of a task', async () => {
    const { answer } = await Runners.runTask(inspector.task(null), { store: false })
    expect(Trajectory.fromJSON(JSON.parse(answer!))).toMatchObject({ agent: 'roamer', steps: { length: 2 } })
  })

  test('is a clear error once the store is gone', async () => {
    const { store } = storeFolder()
    const response = await Runners.runTask(spreadParty.task({ slow: 1 }), { store })
    rmSync(store, { recursive: true })
    await expect(response.toTrajectory()).rejects.toMatchObject({ code: 'STORE_GONE' })
  })
})

describe('run.trajectories()', () => {
  test('gives the trajectories of a run, the same as its responses gave', async () => {
    const { store } = storeFolder()
    const tasks = Array.from({ length: 40 }, (_, i) => roamer.task({ steps: i % 4 }, { id: `t${i}` }))
    const all = [...tasks, chief.task({ fails: 0 }, { id: 'chief' }), chief.task({ fails: 9 }, { id: 'fails' })]
    const responses = await Runners.runTask(all, { store, runId: 'r', seed: 1 })
    const given = new Map<string, unknown>()
    for (const [id, response] of responses) given.set(id, plain(await response.toTrajectory()))
    using run = RunFile.open('r', { store })
    const read = new Map<string, unknown>()
    for await (const trajectory of run.trajectories()) read.set(trajectory.id, plain(trajectory))
    expect(read).toEqual(given)
    const failed: string[] = []
    for await (const { id } of run.trajectories({ failed: true })) failed.push(id)
    expect(failed).toEqual(['fails'])
  })

  test('does not hold up the event loop, whatever the size of a trajectory', async () => {
    const { store } = storeFolder()
    await Runners.runTask(roamer.task({ steps: 5_000 }), { store, runId: 'r' })
    using run = RunFile.open('r', { store })
    let turns = 0
    const ticking = setInterval(() => turns++, 1)
    for await (const { steps } of run.trajectories()) expect(steps).toHaveLength(5_000)
    clearInterval(ticking)
    expect(turns).toBeGreaterThan(3)
  })
})

describe('the digest of a response', () => {
  const tasks = Array.from({ length: 30 }, (_, i) => roamer.task({ steps: 12 + (i % 5), slow: 2 }, { id: `t${i}` }))
  const parties = Array.from({ length: 10 }, (_, i) => party.task({ slow: 5 }, { id: `p${i}` }))
  const digests = async (
    config: object,
    order: readonly (typeof tasks | typeof parties)[number][] = [...tasks, ...parties],
  ) => {
    const responses = await Runners.runTask(order, { seed: 3, store: false, ...config })
    return Object.fromEntries(
      Array.from(responses, ([id, { digest }]): [string, string | undefined] => [id, digest]).toSorted(),
    )
  }

  test('is the same for the same seed, on any number of workers and in any order, and another for another seed', async () => {
    const usual = await digests({ workerNum: 1, concurrency: 4 })
    expect(Object.values(usual).every((digest) => /^[0-9a-f]{64}$/.test(digest!))).toBe(true)
    expect(new Set(Object.values(usual)).size).toBe(40)
    expect(await digests({ workerNum: 4, concurrency: 16 }, [...parties, ...tasks].reverse())).toEqual(usual)
    expect(await digests({ seed: 4 })).not.toEqual(usual)
  })

  test('is in the run file, and can be made again from the steps that are stored there', async () => {
    const { store, file } = storeFolder()
    const usual = await digests({ store, runId: 'r' })
    const rows = query(file('r'), 'SELECT id, digest FROM responses ORDER BY id')
    expect(Object.fromEntries(rows.map(({ id, digest }) => [id, digest]))).toEqual(usual)
    using run = RunFile.open('r', { store })
    for (const { id, trajectory } of run.responses())
      expect(digestOf(trajectory, { status: 'success' })).toBe(usual[id])
  })

  test('is that of the first rollout in a run with rollouts too; the others have their own', async () => {
    const usual = await digests({})
    const rolled = await digests({ rollouts: 2 })
    for (const [id, digest] of Object.entries(usual)) {
      expect(rolled[id]).toBe(digest)
      expect(rolled[`${id}@2`]).not.toBe(digest)
    }
  })
})
