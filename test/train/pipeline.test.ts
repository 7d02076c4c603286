import { existsSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Runners } from 'manyworlds'
import { randomPolicy, stepAgent } from 'manyworlds/agents'
import { includes } from 'manyworlds/grade'
import { StoredTraining } from 'manyworlds/runs'
import { DistributedTrainingPipeline, type EpochReport, type PipelineOptions } from 'manyworlds/train'
import { afterAll, expect, onTestFinished, test } from 'vitest'
import { broken, driver, fickle, type LightsTask, lights, lightsTasks } from '../agents/lights.ts'
import { refused } from '../support/refused.ts'

afterAll(() => Runners.shutdown())

const folder = () => {
  const path = mkdtempSync(join(tmpdir(), 'mw-training-'))
  onTestFinished(() => rmSync(path, { recursive: true, force: true }))
  return path
}

const OPTIONS = {
  ...{ agent: driver, tasks: lightsTasks(60), store: false, workerNum: 2, seed: 5 },
  ...{ rollouts: 4, tasksPerUpdate: 4, tasksPerEpoch: 12, algorithm: { lr: 0.1 } },
} as const satisfies PipelineOptions

async function train(options: Partial<PipelineOptions>, epochs = 2): Promise<EpochReport[]> {
  const reports: EpochReport[] = []
  const pipeline = new DistributedTrainingPipeline({ ...OPTIONS, ...options })
  for await (const report of pipeline.train({ epochs })) reports.push(report)
  return reports
}

/** Divided before: by content, tasks that also say how slow they are would be divided in another way. */
function parts(more: Partial<LightsTask> = {}) {
  const all = lightsTasks(60, more)
  return { train: all.slice(0, 48), validation: all.slice(48, 54), test: all.slice(54) }
}

const LEARNERS = new URL('../agents/lights-learners.ts', import.meta.url)
const troubled = (options: object) => ({ module: LEARNERS, export: 'troubledLearner', options })

test('an agent becomes better, and validation and test say so', async () => {
  const reports = await train({}, 10)
  expect(reports.map(({ epoch }) => epoch)).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 9, 10])
  const [first, last] = [reports[0]!, reports.at(-1)!]
  expect(first).toMatchObject({ trajectories: 48, updates: 3, version: 3, length: 3, dropped: 0, test: null })
  expect(last.reward).toBeGreaterThan(first.reward! + 0.3)
  expect(last.metrics).toMatchObject({ loss: expect.any(Number), entropy: expect.any(Number) })
  expect(last.validation!.success!.value).toBeGreaterThan(0.5)
  const { test, best } = last
  expect(test).toMatchObject({ version: best })
  expect(test!.difference!.low).toBeGreaterThan(0)
  expect(test!.success!.high).toBeGreaterThan(test!.success!.low)
})

test('the same seed gives the same curve with other workers, latency, kills of workers and of the learner', async () => {
  const lr = { lr: 0.1 } as const
  const [undisturbed, other] = await Promise.all([
    train({ algorithm: lr, tasks: parts() }),
    train({ algorithm: lr, tasks: parts(), seed: 6 }),
  ])
  const digests = undisturbed.map(({ digest }) => digest)
  expect(digests.join()).toMatch(/^[0-9a-f]{64},[0-9a-f]{64}$/)
  expect(other.map(({ digest }) => digest)).not.toEqual(digests)

  const marks = folder()
  const disturbed = await train({
    algorithm: {},
    tasks: parts({ delayMs: 20, crashOnce: join(marks, 'worker') }),
    ...{ workerNum: 4, concurrency: 3 },
    learner: troubled({ at: 3, how: 'die', once: join(marks, 'learner') }),
  })
  expect([existsSync(join(marks, 'worker')), existsSync(join(marks, 'learner'))]).toEqual([true, true])
  expect(disturbed.map(({ digest }) => digest)).toEqual(digests)
})

test('nothing is learned from rewards that are dealt out at random, nor without learning', async () => {
  const [shuffled, off] = await Promise.all([
    train({ control: 'shuffled' }, 10),
    train({ control: 'off', runId: 'off' }, 3),
  ])
  expect(shuffled.at(-1)!.version).toBeGreaterThan(10)
  expect(shuffled.at(-1)!.reward).toBeLessThan(0.5)
  expect(off.at(-1)).toMatchObject({ version: 0, loss: null, updates: 9, best: 0 })
  // Each collection draws its own chances.
  expect(new Set(off.map(({ reward }) => reward)).size).toBe(3)
})

test('trainEpoch trains one epoch at a time, of as many tasks as it is told, in full updates', async () => {
  await using pipeline = new DistributedTrainingPipeline(OPTIONS)
  expect(await pipeline.trainEpoch()).toMatchObject({ epoch: 1, trajectories: 48, updates: 3 })
  expect(await pipeline.trainEpoch({ tasksPerEpoch: 6 })).toMatchObject({ epoch: 2, trajectories: 32, updates: 5 })
  expect(pipeline.id).toMatch(/^\d{8}-/)
})

test('a curriculum comes to the same curve twice, and leaves no task out for ever', async () => {
  const curriculum = { curriculum: { floor: 0.3 }, tasks: lightsTasks(24), tasksPerUpdate: 8, tasksPerEpoch: 16 }
  const [one, two] = await Promise.all([train(curriculum, 3), train(curriculum, 3)])
  expect(one.map(({ digest }) => digest)).toEqual(two.map(({ digest }) => digest))
})

test('it stops when validation has not become better for a while', async () => {
  const reports = await train({ control: 'off', patience: 2, evaluate: { every: 1 } }, 10)
  // The version stays the first one, so there is no later one that could be better.
  expect(reports.length).toBe(10)
  const learned = await train({ patience: 2, algorithm: { lr: 1e-9 } }, 30)
  expect(learned.length).toBeLessThan(30)
  expect(learned.at(-1)!.test).not.toBeNull()
})

test.each([
  ['no agent', { agent: undefined }, '`agent` must be an agent'],
  [
    'a policy that cannot learn',
    { agent: stepAgent({ name: 'by-chance', environment: lights, policy: randomPolicy() }) },
    'has no learner of its own; give the training a `learner`',
  ],
  ['a wrong key', { rolouts: 8 }, "unknown key 'rolouts', did you mean 'rollouts'"],
  ['a wrong number', { tasksPerUpdate: 0 }, '`tasksPerUpdate` must be at least 1'],
  ['a key of runs that is wrong', { workerNum: -1 }, '`workerNum` must be at least 1'],
  ['what is not an option of trainings', { limit: 5 }, '`limit` is not an option of trainings'],
  [
    'a wrong way to evaluate',
    { evaluate: { mode: 'best' } },
    "`evaluate.mode` must be one of 'sample', 'greedy', it is 'best'",
  ],
  ['progress for nobody', { progress: 'yes' }, '`progress` must be true, false or an observer function'],
  ['a wrong algorithm', { algorithm: { lr: -1 } }, '`lr` of the algorithm must be'],
  [
    'an unknown key of the algorithm',
    { algorithm: { learningRate: 0.1 } },
    "unknown key 'learningRate' in `algorithm`",
  ],
  ['an unknown key of the loss', { algorithm: { loss: { name: 'clip', clipHihg: 0.3 } } }, "did you mean 'clipHigh'?"],
  [
    'an unknown key of the advantages',
    { algorithm: { advantages: { name: 'grpo', sdt: false } } },
    "did you mean 'std'?",
  ],
  ['an unknown alarm', { alarms: { entropie: 1 } }, "did you mean 'entropy'?"],
  ['gae without a value head', { algorithm: { advantages: { name: 'gae' } } }, 'need a value head'],
  ['a wrong loss', { algorithm: { loss: { name: 'huber' } } }, 'loss'],
  ['wrong advantages', { algorithm: { advantages: { name: 'ppo' } } }, '`advantages` of the trainer'],
])('%s is refused before anything starts', async (_, wrong, words) => {
  await refused(() => new DistributedTrainingPipeline({ ...OPTIONS, ...wrong } as never), 'CONFIG_INVALID', words)
})

test.each([
  ['no tasks', { tasks: [] }, /there are no training tasks/],
  ['rollouts that cannot be compared', { rollouts: 1 }, /compares the rollouts of a task with each other/],
  [
    'the same question in two parts',
    { tasks: { train: lightsTasks(3), test: lightsTasks(1) } },
    /has the same question as a task of `tasks.train`/,
  ],
  ['a task of another agent', { tasks: [broken.task({ street: 1 })] }, /is for agent 'broken-driver'/],
  ['a task without input', { tasks: [{ street: 1 }] }, /must be an object with an `input`/],
  [
    'two tasks of one id',
    {
      tasks: [
        { id: 'a', input: 1 },
        { id: 'a', input: 2 },
      ],
    },
    /have the id 'a'/,
  ],
])('%s is refused before anything starts, once tasks are read', async (_, wrong, message) => {
  await expect(train(wrong as never)).rejects.toMatchObject({
    code: 'CONFIG_INVALID',
    message: expect.stringMatching(message),
  })
})

test('a policy that workers cannot open ends the training with the reason', async () => {
  await expect(train({ agent: broken })).rejects.toMatchObject({
    code: 'TRAINING_FAILED',
    message: expect.stringMatching(
      /failed at update 0; version 0 was kept: all 16 episodes .* SETUP_FAILED: .*no such weights/s,
    ),
  })
})

test.each([
  ['throws', 'throw', /the learner has had enough/],
  ['gives no number', 'nan', /loss.* NaN/],
] as const)('a learner that %s ends the training, and the last good version stays', async (_, how, message) => {
  const pipeline = new DistributedTrainingPipeline({ ...OPTIONS, algorithm: {}, learner: troubled({ at: 3, how }) })
  const error = await pipeline.trainEpoch().catch((thrown: unknown) => thrown)
  expect(error).toMatchObject({
    code: 'LEARNER_FAILED',
    message: expect.stringMatching(/failed at update 2; version 2 was kept/),
  })
  expect((error as Error).message).toMatch(message)
})

test('a learner that dies each time is given up', async () => {
  const dying = { algorithm: {}, learner: troubled({ at: 2, how: 'die' }) }
  await expect(train(dying)).rejects.toMatchObject({
    code: 'LEARNER_FAILED',
    message: expect.stringMatching(/died 4 times on the same batch: .*exited with code 7/),
  })
})

test('a grader that is for evaluation only is refused for training tasks, not for the others', async () => {
  const sets = parts()
  await expect(train({ grade: includes() })).rejects.toMatchObject({
    code: 'CONFIG_INVALID',
    message: expect.stringMatching(/grader 'includes' of training task '\w+' is for evaluation only/),
  })
  const graded = { ...sets, test: sets.test.map((task) => ({ ...task, groundTruth: 'x', grade: includes() })) }
  expect(await train({ tasks: graded }, 1)).toHaveLength(1)
})

test('a learner that takes longer than `learnerTimeoutMs` is restarted; its notices are shown', async () => {
  const notices: string[] = []
  const [report] = await train(
    {
      ...{ algorithm: {}, learnerTimeoutMs: 3000 },
      learner: troubled({ at: 2, how: 'never-ends', once: join(folder(), 'learner') }),
      progress: () => ({ notice: (line) => notices.push(line) }),
    },
    1,
  )
  expect(report).toMatchObject({ updates: 3, version: 3 })
  expect(notices).toEqual([
    'a learner that will never-ends',
    'the thread of the learner was killed, because it did not answer `update` within 3000 ms (`learnerTimeoutMs`); restarting it with its last state',
    'a learner that will never-ends',
  ])
})

test('batches without variance make no version, and a word is said about it', async () => {
  const reports = await train({ tasks: lightsTasks(60, { fails: 'always' }), algorithm: { failed: 'zero' } }, 2).catch(
    (error: unknown) => error,
  )
  expect(reports).toMatchObject({ code: 'TRAINING_FAILED', message: expect.stringMatching(/the street is closed/) })
  const flat = await train({ tasks: lightsTasks(60, { reward: 0.5 }) }, 2)
  expect(flat.at(-1)).toMatchObject({ version: 0, skippedGroups: 12, loss: null, reward: 0.5 })
  expect(flat.at(-1)!.alarms.join()).toMatch(/no group of the last 5 updates had differing rewards/)
})

test('a function is told how far it is', async () => {
  const told: string[] = []
  let episodes = 0
  const { train: tasks, test } = parts()
  await train(
    {
      tasks: { train: tasks, test },
      progress: ({ agent, tasks, file }) => {
        told.push(`${agent}: ${tasks.train}, ${tasks.validation}, ${tasks.test}, ${file}`)
        return {
          run: (what, count) => told.push(`${what}: ${count}`),
          episode: () => episodes++,
          update: ({ number }) => told.push(`${number} is done`),
          end: ({ interrupted }) => told.push(`end, ${interrupted ? 'interrupted' : 'finished'}`),
        }
      },
    },
    1,
  )
  expect(told).toEqual([
    'lights-driver: 48, 0, 6, undefined',
    ...['update 0: 16', '0 is done', 'update 1: 16', '1 is done', 'update 2: 16', '2 is done'],
    ...['test of version 0: 24', 'test of version 3: 24', 'end, finished'],
  ])
  expect(episodes).toBe(3 * 16 + 2 * 24)
})

test('a signal ends it with TRAINING_STOPPED', async () => {
  const abort = new AbortController()
  const pipeline = new DistributedTrainingPipeline({
    ...OPTIONS,
    ...{ tasks: lightsTasks(60, { delayMs: 200 }), signal: abort.signal },
    progress: () => ({ episode: () => abort.abort() }),
  })
  await expect(pipeline.trainEpoch()).rejects.toMatchObject({ code: 'TRAINING_STOPPED' })
})

test('one epoch comes after the other, and closing stops the one that is under way', async () => {
  const pipeline = new DistributedTrainingPipeline({ ...OPTIONS, tasks: lightsTasks(60, { delayMs: 300 }) })
  const first = pipeline.trainEpoch().catch((thrown: unknown) => thrown)
  await expect(pipeline.trainEpoch()).rejects.toMatchObject({ code: 'CONFIG_INVALID' })
  await pipeline.close()
  expect(await first).toMatchObject({ code: 'TRAINING_STOPPED' })
})

test('tasks that come as a stream are read once, and the training goes on with them', async () => {
  async function* stream() {
    yield* lightsTasks(60)
  }
  const store = folder()
  const pipeline = new DistributedTrainingPipeline({ ...OPTIONS, store, tasks: stream() })
  await pipeline.trainEpoch()
  await pipeline.close()
  expect((await pipeline.trainEpoch()).epoch).toBe(2)
  await pipeline.close()
})

test('sinks are told of each update and evaluation; one that throws is left out, and the training goes on', async () => {
  const steps: [number, Readonly<Record<string, number>>][] = []
  const notes: string[] = []
  const store = folder()
  const log = [
    {
      open: ({ trainingId }: { trainingId: string }) => void notes.push(trainingId),
      scalars: (step: number, values: Readonly<Record<string, number>>) => void steps.push([step, values]),
    },
    {
      scalars: () => {
        throw new Error('no connection')
      },
    },
    `tensorboard:${join(store, 'board')}`,
  ] as const
  const reports = await train({ store, log, runId: 'logged' }, 2)
  expect(notes).toEqual(['logged'])
  expect(steps.map(([step]) => step)).toEqual([0, 1, 2, 3, 3, 4, 5, 6, 6, 0, 6])
  expect(steps[1]![1]).toMatchObject({ reward: expect.any(Number), loss: expect.any(Number), version: 1 })
  expect(steps[8]![1]).toMatchObject({ 'validation/success': reports[1]!.validation!.success!.value })
  expect(existsSync(join(store, 'board', 'logged'))).toBe(true)
})

test('says why many episodes of an update failed, and counts rates over those that were judged', async () => {
  const tasks = lightsTasks(48).map(({ input }) => ({
    input: { ...input, ...(input.street % 3 === 0 && { fails: 'always' as const }) },
  }))
  const [report] = await train({ tasks: { train: tasks } }, 1)
  expect(report!.dropped).toBeGreaterThan(0)
  expect(report!.alarms.join()).toMatch(
    /\d+ of 16 episodes of an update failed; the first error is \w+: .*the street is closed/,
  )
  const { metrics: _, ...figures } = report!
  expect(figures.successRate).toBeLessThanOrEqual(1)
})

test('says so when the learner finds other probabilities than the workers', async () => {
  const [report] = await train({ agent: fickle }, 1)
  expect(report!.alarms.join()).toMatch(/the learner computes other probabilities than the workers did/)
})

test('a training that is refused stays as it was', async () => {
  const store = folder()
  await train({ store, runId: 'kept' }, 1)
  const again = () => train({ store, runId: 'kept', resume: 'kept', rollouts: 2 }, 2)
  await refused(again, 'TRAINING_CHANGED', 'rollouts: 4 before, 2 now')
  using stored = StoredTraining.open(join(store, 'kept'))
  expect(stored.overview()).toMatchObject({ status: 'finished', updates: 3 })
})
