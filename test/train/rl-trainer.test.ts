import { describe, expect, test } from 'vitest'
import { randomFrom } from '../../dist/random.js'
import { nextRunningMean } from '../../dist/train/advantages.js'
import { Alarms } from '../../dist/train/alarms.js'
import { rowsOf } from '../../dist/train/episode-rows.js'
import { type Episode, episodesOf } from '../../dist/train/episodes.js'
import { ExperienceBuffer } from '../../dist/train/experience-buffer.js'
import { solvedOf } from '../../dist/train/failed-rollouts.js'
import { gradientLearner } from '../../dist/train/gradient-learner.js'
import { RLTrainer, type TrainerOptions } from '../../dist/train/rl-trainer.js'
import { softmaxCore } from '../../dist/train/softmax/softmax-core.js'
import { softmaxPolicy } from '../../dist/train/softmax/softmax-policy.js'
import { Trajectory, type TrajectoryParts } from '../../dist/trajectory/trajectory.js'

/** A bandit: of two levers, the second pays. Episodes of two pulls, groups of four. */

const policy = softmaxPolicy<string, string>({ bits: 8 })
const LEVERS = ['left', 'right']

const newTrainer = (options: Partial<TrainerOptions> = {}) =>
  new RLTrainer({
    learner: gradientLearner(softmaxCore(policy), { loss: { name: 'reinforce' }, lr: 0.1 }),
    ...options,
  })

async function episode(trainer: RLTrainer, task: string, rollout: number, round: number): Promise<Trajectory> {
  const { ref, bytes } = await trainer.publish()
  const acting = policy.openBytes(bytes)
  const random = randomFrom({ seed: 1, purpose: 'test', stream: '', task, visit: round, rollout })
  const choices = [0, 1].map(() => acting.act({ observation: task, candidates: LEVERS, mode: 'sample', random }))
  const reward = choices.reduce((sum, { action }) => sum + (action === 'right' ? 0.5 : 0), 0)
  return trajectoryOf({
    ...{ task, rollout, grade: { reward, success: reward === 1, grader: { name: 'test' } } },
    steps: choices.map(({ action, index, logProb, value }, place) => ({
      ...{ index: place, atMs: place, kind: 'action', observation: task, candidates: LEVERS, action, choice: index! },
      ...{ logProb, mode: 'sample', reward: 0, policy: { name: 'softmax', version: ref.version } },
      ...(value !== undefined && { value }),
    })),
  })
}

const trajectoryOf = (parts: Partial<TrajectoryParts> & Pick<TrajectoryParts, 'task' | 'rollout'>): Trajectory =>
  new Trajectory({
    ...{ id: `${parts.task}@${parts.rollout}`, run: null, agent: 'puller', split: null, visit: 0, attempt: 1, seed: 1 },
    ...{ group: { id: parts.task, size: 4 }, branches: [{ id: 0, agent: 'puller', parent: null }], steps: [] },
    ...{ ending: { kind: 'terminated' }, episode: null, grade: null, digest: null, usage: {}, ms: 1, meta: {} },
    ...parts,
  })

const batch = (trainer: RLTrainer, round: number, tasks = ['a', 'b', 'c', 'd']) =>
  Promise.all(tasks.flatMap((task) => [1, 2, 3, 4].map((rollout) => episode(trainer, task, rollout, round))))

describe.each([
  { name: 'grpo' },
  { name: 'rloo' },
  { name: 'reinforce', baseline: 'batch' },
  { name: 'reinforce', baseline: 'running', discount: 0.9 },
] as const)('with $name $baseline', (advantages) => {
  test('an agent learns', async () => {
    const trainer = newTrainer({ advantages })
    await trainer.start({ seed: 1 })
    const rewards: number[] = []
    for (let round = 0; round < 60; round++)
      rewards.push((await trainer.trainStep(await batch(trainer, round))).reward!)
    expect(rewards[0]).toBeLessThan(0.75)
    expect(rewards.at(-1)).toBeGreaterThan(0.9)
  })

  test('the same numbers come out, whatever the order, and after a checkpoint', async () => {
    const [straight, shuffled] = [newTrainer({ advantages }), newTrainer({ advantages })]
    await Promise.all([straight.start({ seed: 1 }), shuffled.start({ seed: 1 })])
    let resumed = newTrainer({ advantages })
    await resumed.start({ seed: 1 })
    for (let round = 0; round < 5; round++) {
      const given = await batch(straight, round)
      const report = await straight.trainStep(given)
      expect(await shuffled.trainStep(given.toReversed())).toEqual(report)
      expect(await resumed.trainStep(given)).toEqual(report)
      const state = await resumed.save()
      resumed = newTrainer({ advantages })
      await resumed.start({ seed: 1, state })
    }
  })
})

describe('a batch', () => {
  test('of any size is learned from', async () => {
    const trainer = newTrainer()
    await trainer.start({ seed: 1 })
    const { trained, version } = await trainer.trainStep(
      [0.2, 0.8].map((reward, i) => ({ ...acted('a', i + 1), grade: graded(reward) })),
    )
    expect([trained, version]).toEqual([2, 1])
  })

  test('without variance teaches nothing, and makes no version', async () => {
    const trainer = newTrainer()
    await trainer.start({ seed: 1 })
    const same = [1, 2, 3].map((rollout) => ({ ...acted('a', rollout), grade: graded(1) }))
    expect(await trainer.trainStep([...same, { ...acted('b', 1), grade: graded(0) }])).toMatchObject({
      ...{ version: 0, trained: 0, skippedGroups: 2, episodes: 4 },
    })
  })

  test('says what rollouts count that have no reward', async () => {
    const failed = { ...acted('a', 3), ending: failure, grade: null }
    const given = [...[0, 1].map((reward) => ({ ...acted('a', reward + 1), grade: graded(reward) })), failed]
    const rewardWith = async (policy: TrainerOptions['failed']) => {
      const trainer = newTrainer(policy === undefined ? {} : { failed: policy })
      await trainer.start({ seed: 1 })
      const { reward, dropped, trained } = await trainer.trainStep(given)
      return [reward, dropped, trained]
    }
    expect(await rewardWith(undefined)).toEqual([0.5, 1, 2])
    expect(await rewardWith('zero')).toEqual([1 / 3, 0, 3])
    expect(await rewardWith({ penalize: 1 })).toEqual([0, 0, 3])
  })

  test('of actions that nobody can learn from is refused, and says which', async () => {
    const trainer = newTrainer()
    await trainer.start({ seed: 1 })
    const unlikely = acted('a', 2, null)
    await expect(
      trainer.trainStep([
        { ...acted('a', 1), grade: graded(0) },
        { ...unlikely, grade: graded(1) },
      ]),
    ).rejects.toMatchObject({ code: 'ROW_INVALID', message: expect.stringContaining("task 'a', rollout 2") })
  })
})

test('a running baseline is the mean of the returns of all actions, as it is subtracted from each', () => {
  const actions = Array.from({ length: 4 }, (_, index) => ({
    ...{ index, observation: 'x', candidates: ['a'], action: 'a', choice: 0, logProb: 0, mode: 'sample', reward: 1 },
    policy: { name: 'p', version: 0 },
  }))
  const one = {
    ...{ task: 'a', rollout: 1, group: 'a', reward: 4, actions, lines: [], decisions: 4, isCut: false },
    rewards: Float64Array.of(1, 1, 1, 1),
  } as unknown as Episode
  const made = rowsOf([[one]], { name: 'reinforce', baseline: 'running' }, 'actions', { mean: 0, weight: 0 })
  expect(made.returns).toEqual([4, 3, 2, 1])
  const next = nextRunningMean({ mean: 0, weight: 0 }, made.returns)
  const { rows } = rowsOf([[one]], { name: 'reinforce', baseline: 'running' }, 'actions', next)
  expect(rows.map(({ advantage }) => advantage)).toEqual([1.5, 0.5, -0.5, -1.5])
})

const withHash = (reward: number | null) => ({ reward, success: null, grader: { name: 'g', sha256: 'ab' } })
const failed = (code: string): Partial<TrajectoryParts> => ({
  ending: { kind: 'failed', error: { code, message: 'no' } } as TrajectoryParts['ending'],
})

describe('what is left out, and what counts as solved', () => {
  test('everything that is left out is counted, with a reason', async () => {
    const trainer = newTrainer()
    await trainer.start({ seed: 1 })
    const report = await trainer.trainStep([
      ...(await batch(trainer, 0)),
      trajectoryOf({ task: 'a', rollout: 5, grade: withHash(1) }),
      trajectoryOf({ task: 'a', rollout: 6, ...failed('TASK_THREW') }),
      trajectoryOf({ task: 'a', rollout: 7, ...failed('MODEL_TRANSIENT') }),
      trajectoryOf({ task: 'a', rollout: 8, grade: withHash(null) }),
    ])
    expect(report).toMatchObject({ episodes: 20, dropped: 4 })
    expect(report.dropReasons).toEqual({ empty: 1, failed: 1, lost: 1, ungraded: 1 })
  })

  const episode = (reward: number, success: boolean | null = null) =>
    ({ episode: { reward, success } }) as Pick<TrajectoryParts, 'episode'>

  test.each<[string, Partial<TrajectoryParts>[], (boolean | null)[]]>([
    ['the number of a grader', [{ grade: withHash(1) }, { grade: withHash(0.4) }], [true, false]],
    ['a failure of the agent', [{ grade: withHash(1) }, failed('TASK_THREW')], [true, false]],
    ['a failure of something else', [{ grade: withHash(1) }, failed('MODEL_TRANSIENT')], [true, null]],
    ['only failures', [failed('TASK_TIMEOUT'), failed('TASK_THREW'), failed('MODEL_TRANSIENT')], [false, false, null]],
    ['an answer that nothing grades', [{}, failed('TASK_THREW')], [null, null]],
    ['the return of an environment has its own scale', [episode(200), failed('TASK_THREW')], [null, null]],
    ['the verdict of an environment', [episode(200, true), episode(7, false)], [true, false]],
  ])('%s', (_, all, expected) => {
    const rollouts = all.map((parts, index) => trajectoryOf({ task: 'a', rollout: index + 1, ...parts }))
    expect(solvedOf(rollouts)).toEqual(expected)
  })

  test('calls of tools that cannot be parsed raise an alarm, also of a language model', () => {
    const call = (result: string) => ({ kind: 'tool', name: 't', arguments: {}, result, ms: 1 })
    const steps = [call('Invalid input for tool t: x'), call('3'), call("Model tried to call unavailable tool 'u'.")]
    const trajectories = [trajectoryOf({ task: 'a', rollout: 1, steps: steps as never })]
    expect(new Alarms().check({ metrics: {}, length: 1, trajectories })).toEqual([
      '67 % of actions or tool calls could not be parsed by the environment or the agent',
    ])
  })

  test('the penalty of a failed rollout is its whole reward, wherever returns are computed', () => {
    const step = { observation: 'x', candidates: ['a'], action: 'a', choice: 0, logProb: 0, mode: 'sample', reward: 1 }
    const action = { kind: 'action', ...step, policy: { name: 'p', version: 0 } }
    const noted = { kind: 'custom', name: 'n', data: null, reward: 1 }
    const steps = [action, noted, action].map((one, index) => ({ ...one, index, at: 0 }))
    const rollout = trajectoryOf({ task: 'a', rollout: 1, group: null, steps: steps as never, ...failed('TASK_THREW') })
    const buffer = new ExperienceBuffer({ failed: { penalize: 0.5 } })
    buffer.addTrajectory(rollout)
    buffer.computeReturns(1, 'steps')
    const [held] = buffer.sampleBatch(1)
    const { groups } = episodesOf([rollout], { penalize: 0.5 })
    // The reward of the step between the actions belongs to the action before it.
    expect([...groups[0]![0]!.rewards]).toEqual([2, -2.5])
    expect([...held!.returns!]).toEqual([-0.5, -2.5])
  })
})

test('metrics of several steps are those of one, if the steps are alike', async () => {
  const report = async (more: object) => {
    const algorithm = { loss: { name: 'clip' }, lr: 1e-9, ...more } as const
    const trainer = newTrainer({ learner: gradientLearner(softmaxCore(policy), algorithm) })
    await trainer.start({ seed: 1 })
    return (await trainer.trainStep(await batch(trainer, 0))).metrics
  }
  expect((await report({})).effectiveSampleShare).toBeCloseTo(1, 6)
  expect((await report({ epochs: 3, miniBatches: 4 })).effectiveSampleShare).toBeCloseTo(1, 6)
})

describe('a batch that an older version has collected', () => {
  const offPolicy = (maxWeight?: number) => {
    const loss = { name: 'clip', ...(maxWeight && { maxWeight }) } as const
    return newTrainer({ learner: gradientLearner(softmaxCore(policy), { loss, lr: 0.3, proximal: 'learner' }) })
  }

  test('is reported as what it is: its age in versions, what it is still worth, and how much was capped', async () => {
    const trainer = offPolicy()
    await trainer.start({ seed: 1 })
    const old = await batch(trainer, 0)
    for (let round = 1; round <= 6; round++) {
      const { staleness, metrics } = await trainer.trainStep(await batch(trainer, round))
      expect(staleness).toEqual({ mean: 0, max: 0 })
      expect(metrics).toMatchObject({ ratio: 1, cappedShare: 0, largestWeight: 1 })
      expect(metrics.effectiveSampleShare).toBeCloseTo(1, 9)
    }
    const fresh = await batch(trainer, 7, ['e', 'f'])
    const { staleness, metrics } = await trainer.trainStep([...old, ...fresh])
    expect(staleness!.max).toBe(6)
    expect(staleness!.mean).toBeGreaterThan(0)
    expect(staleness!.mean).toBeLessThan(6)
    // The ratio that is clipped is to the learner as it was when the update began; how old samples are is in their weight.
    expect(metrics.ratio).toBeCloseTo(1, 12)
    expect(metrics.effectiveSampleShare).toBeLessThan(0.95)
    expect(metrics.largestWeight).toBeGreaterThan(1)
  })

  test('weighs at most `maxWeight` times as much', async () => {
    const after = async (maxWeight?: number) => {
      const trainer = offPolicy(maxWeight)
      await trainer.start({ seed: 1 })
      const old = await batch(trainer, 0)
      for (let round = 1; round <= 6; round++) await trainer.trainStep(await batch(trainer, round))
      return (await trainer.trainStep(old)).metrics
    }
    const [two, capped] = [await after(), await after(1.01)]
    expect(capped.cappedShare).toBeGreaterThan(0.1)
    expect(two.cappedShare).toBeLessThan(capped.cappedShare!)
    // What the cap hides is shown.
    expect(two.largestWeight).toBe(capped.largestWeight)
  })

  test('changes nothing if no version lies between: the numbers are those of a learner that takes it as its own', async () => {
    const own = newTrainer({ learner: gradientLearner(softmaxCore(policy), { loss: { name: 'clip' }, lr: 0.3 }) })
    const trainer = offPolicy()
    await Promise.all([own.start({ seed: 1 }), trainer.start({ seed: 1 })])
    for (let round = 0; round < 5; round++) {
      const given = await batch(own, round)
      expect(await trainer.trainStep(given)).toEqual(await own.trainStep(given))
    }
  })
})

test('episodes that become much longer raise an alarm', async () => {
  const trainer = newTrainer({ alarms: { length: 3 } })
  await trainer.start({ seed: 1 })
  const of = (actions: number) =>
    [0, 1].map((reward) => ({ ...acted('a', reward + 1, -0.7, actions), grade: graded(reward) }))
  expect((await trainer.trainStep(of(2))).alarms).toEqual([])
  expect((await trainer.trainStep(of(8))).alarms).toEqual([
    'the mean episode length is 8.0 actions; in the first batch it was 2.0',
  ])
})

test('wrong settings are refused', () => {
  expect(() => newTrainer({ advantages: { name: 'ppo' } as never })).toThrow(/one of grpo, rloo, best, reinforce, gae/)
  expect(() => newTrainer({ failed: 'ignore' as never })).toThrow(/'drop', 'zero', or/)
  expect(() => newTrainer({ advantages: { name: 'gae', lambda: 2 } })).toThrow(/between 0 and 1/)
})

const failure = { kind: 'failed', error: { code: 'TASK_THREW', name: 'Error', message: 'no' } } as const
const graded = (reward: number) => ({ reward, success: reward === 1, grader: { name: 'test' } })

function acted(task: string, rollout: number, logProb: number | null = -0.7, actions = 1): Trajectory {
  return trajectoryOf({
    ...{ task, rollout },
    steps: Array.from({ length: actions }, (_, index) => ({
      ...{
        index,
        atMs: index,
        kind: 'action',
        observation: task,
        candidates: LEVERS,
        action: LEVERS[rollout % 2],
        choice: rollout % 2,
      },
      ...{ logProb, mode: 'sample', reward: 0, policy: { name: 'softmax', version: 0 } },
    })),
  })
}
