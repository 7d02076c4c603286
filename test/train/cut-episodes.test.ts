import { Runners } from 'manyworlds'
import { ParallelTaskExecutor, RLTrainer, runLearnerInThread } from 'manyworlds/train'
import { afterAll, describe, expect, test } from 'vitest'
import { gradientLearner } from '../../dist/train/gradient-learner.js'
import type { Learner } from '../../dist/train/learner.js'
import type { ActionRow } from '../../dist/train/row.js'
import { softmaxCore } from '../../dist/train/softmax/softmax-core.js'
import { Trajectory } from '../../dist/trajectory/trajectory.js'
import { byAgent, byWorld, gatePolicy } from '../agents/gate.ts'
import { rollout } from './rollout.ts'

afterAll(() => Runners.shutdown())

test.each([
  ['the limit of the agent', byAgent, 'maxSteps'],
  ['the world', byWorld, 'environment'],
])('what follows an episode that was cut short by %s counts', { timeout: 120_000 }, async (_, agent, by) => {
  const module = new URL('./learners/learners.ts', import.meta.url)
  await using learner = await runLearnerInThread({ module, export: 'gateLearns' })
  const trainer = new RLTrainer({ learner, advantages: { name: 'gae', normalize: true } })
  let { ref, bytes } = await trainer.start({ seed: 1 })
  let ways: unknown[] = []
  for (let update = 0; update < 25; update++) {
    const acting = agent.withParams({ ...agent.params, policy: ref })
    const tasks = (['gate', 'gate', 'garden', 'road'] as const).map((place, i) => ({
      id: `${place}${i}`,
      agent: acting,
      input: place,
    }))
    const trajectories: Trajectory[] = []
    const executor = new ParallelTaskExecutor({ workerNum: 1, store: false })
    const config = { rollouts: 8, seed: update, blobs: { weights: bytes! } }
    for await (const trajectory of executor.distributeTasks(tasks, config)) trajectories.push(trajectory)
    const { metrics } = await trainer.trainStep(trajectories)
    if (update > 10) expect(metrics.explainedVariance).toBeGreaterThan(0.5)
    ;({ ref, bytes } = await trainer.publish())
    const gates = trajectories.filter(({ task }) => task.startsWith('gate'))
    for (const { ending } of gates) expect(ending).toEqual({ kind: 'truncated', by })
    ways = gates.map(({ finalObservation }) => finalObservation)
  }
  // If the values of where they were counted instead, both ways would stay equally good.
  expect(ways.filter((place) => place === 'garden').length / ways.length).toBeGreaterThan(0.85)
})

describe('with advantages by gae', () => {
  const learner = () => gradientLearner(softmaxCore(gatePolicy), { loss: { name: 'reinforce', value: 1 }, lr: 0.1 })
  /** What the learner was given. */
  const rowsOf = async (trajectories: Trajectory[], advantages = {}, more: Partial<Learner> = {}) => {
    const seen: ActionRow[] = []
    const inner = learner()
    const trainer = new RLTrainer({
      learner: {
        ...{ start: (o) => inner.start(o), publish: () => inner.publish(), retire: async () => {} },
        ...{ save: () => inner.save(), load: (state) => inner.load(state) },
        values: async (observations) => Float64Array.from(observations, (place) => (place === 'garden' ? 10 : 3)),
        update: async ({ rows }) => {
          seen.push(...(rows as ActionRow[]))
          return {}
        },
        ...more,
      } as Learner,
      advantages: { name: 'gae', discount: 0.5, ...advantages },
    })
    await trainer.start({ seed: 1 })
    await trainer.trainStep(trajectories)
    return seen
  }
  const withValues = (ending: Trajectory['ending'], finalObservation?: unknown) => {
    const one = rollout({ rewards: [1, 2] })
    const steps = one.steps.map((step) => ({ ...step, value: 4 }))
    return new Trajectory({ ...one, steps, ending, ...(finalObservation !== undefined && { finalObservation }) })
  }
  const cut = { kind: 'truncated', by: 'maxSteps' } as const

  test('the value of the last observation follows a cut, and nothing follows an end', async () => {
    const rows = await rowsOf([withValues(cut, 'garden')])
    expect(rows.map((row) => row.return)).toEqual([1 + (2 + 10 / 2) / 2, 2 + 10 / 2])
    expect(rows.map((row) => row.advantage)).toEqual([4.5 - 4, 7 - 4])
    const ended = await rowsOf([withValues({ kind: 'terminated' }, 'garden')])
    expect(ended.map((row) => row.return)).toEqual([2, 2])
  })

  test('normalized advantages have mean 0 and deviation 1, and targets stay', async () => {
    const rows = await rowsOf([withValues(cut, 'garden')], { normalize: true })
    expect(rows.map((row) => row.return)).toEqual([4.5, 7])
    expect(rows[0]!.advantage).toBeCloseTo(-1, 6)
    expect(rows[1]!.advantage).toBeCloseTo(1, 6)
  })

  test('what cannot be computed is refused, with the reason', async () => {
    await expect(rowsOf([withValues(cut)])).rejects.toMatchObject({
      code: 'ROW_INVALID',
      message: /has no final observation/,
    })
    await expect(rowsOf([withValues(cut, 'road')], {}, { values: undefined as never })).rejects.toMatchObject({
      code: 'LEARNER_INVALID',
    })
    const one = withValues(cut, 'road')
    const greedy = one.steps.map((step) => ({ ...step, mode: 'greedy', logProb: 0 }))
    await expect(rowsOf([new Trajectory({ ...one, steps: greedy as never })])).rejects.toMatchObject({
      code: 'ROW_INVALID',
      message: expect.stringContaining("in mode 'greedy'"),
    })
  })
})
