import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { drawDistinct } from '../../dist/train/draw-distinct.js'
import type { Experience } from '../../dist/train/experience.js'
import { ExperienceBuffer } from '../../dist/train/experience-buffer.js'
import { Trajectory } from '../../dist/trajectory/trajectory.js'
import { refused } from '../support/refused.ts'
import { trajectories } from '../trajectory/arbitrary.ts'
import { groupOf, rollout } from './rollout.ts'

const idsOf = (batch: readonly Experience[]) => batch.map(({ trajectory }) => trajectory.id)
const fill = (buffer: ExperienceBuffer, groups: number, size = 4) => {
  for (let at = 0; at < groups; at++)
    for (const one of groupOf(`g${at}`, Array<number>(size).fill(at % 2))) buffer.addTrajectory(one)
  return buffer
}

describe('groups', () => {
  test('close when all members have come, in any order, and are compared then, once and for all', () => {
    const buffer = new ExperienceBuffer()
    const members = groupOf('g', [1, 0, 0, 0])
    for (const place of [2, 0, 3]) expect(buffer.addTrajectory(members[place]!)).toBe('held')
    expect(buffer.stats()).toMatchObject({ size: 3, groups: 0, openGroups: 1 })
    expect(buffer.sampleBatch(4)).toEqual([])
    buffer.addTrajectory(members[1]!)
    const batch = buffer.sampleBatch(1)
    expect(idsOf(batch)).toEqual(['g', 'g@2', 'g@3', 'g@4'])
    expect(batch.map(({ advantage }) => advantage)).toEqual([0.75, -0.25, -0.25, -0.25])
    buffer.addBatch(groupOf('h', [1, 1, 1, 1]))
    const [again] = [...buffer.groups()]
    expect(again!.members.map(({ advantage }) => advantage)).toEqual([0.75, -0.25, -0.25, -0.25])
  })

  test('have the advantages of the rule that was given, which sees rewards in the order of rollouts', () => {
    const seen: number[][] = []
    const advantages = (groups: readonly Float64Array[]) => {
      seen.push(...groups.map((rewards) => [...rewards]))
      return { advantages: groups.map((rewards) => rewards.map((reward) => reward * 10)) }
    }
    const buffer = new ExperienceBuffer({ advantages })
    for (const one of groupOf('g', [1, 2, 3]).reverse()) buffer.addTrajectory(one)
    expect(seen).toEqual([[1, 2, 3]])
    expect(buffer.sampleBatch(1).map(({ advantage }) => advantage)).toEqual([10, 20, 30])
  })

  test('of other runs, and trajectories without a group, are kept apart', () => {
    const buffer = new ExperienceBuffer()
    buffer.addBatch([...groupOf('g', [1, 0], { run: 'r1' }), ...groupOf('g', [1, 1], { run: 'r2' })])
    expect(buffer.stats()).toMatchObject({ groups: 2, openGroups: 0 })
    buffer.addTrajectory(rollout({ group: 'alone', rewards: [5], more: { group: null } }))
    expect([...buffer.groups()].map(({ members }) => members.length)).toEqual([2, 2, 1])
    expect([...buffer.groups()].at(-1)!.members[0]).toMatchObject({ reward: 5, advantage: 0 })
  })

  test('can be closed by hand; what comes late, or twice, is not taken', () => {
    const buffer = new ExperienceBuffer()
    const [a, b, c, d] = groupOf('g', [1, 0, 0, 0])
    buffer.addBatch([a!, b!, ...groupOf('h', [1, 0, 0]).slice(1)])
    expect(buffer.addTrajectory(a!)).toBe('duplicate')
    expect(buffer.closeGroups(({ id }) => id === 'g')).toBe(1)
    expect(buffer.sampleBatch(9).map(({ advantage }) => advantage)).toEqual([0.5, -0.5])
    expect([c, d].map((late) => buffer.addTrajectory(late!))).toEqual(['duplicate', 'duplicate'])
    expect(buffer.stats()).toMatchObject({ size: 4, groups: 1, openGroups: 1 })
  })

  test('that never close are dropped when they are the oldest and room is needed, or too many are open', () => {
    const buffer = new ExperienceBuffer({ capacity: 8 })
    buffer.addTrajectory(groupOf('never', [1, 0, 0, 0])[0]!)
    fill(buffer, 2)
    expect(buffer.stats()).toMatchObject({ size: 8, groups: 2, openGroups: 0, abandoned: 1, evicted: 0 })
    const few = new ExperienceBuffer({ maxOpenGroups: 2 })
    for (const group of ['a', 'b', 'c']) few.addTrajectory(rollout({ group, size: null, rewards: [1] }))
    expect(few.stats()).toMatchObject({ size: 2, openGroups: 2, abandoned: 1 })
    few.closeGroups()
    expect([...few.groups()].map(({ id }) => id)).toEqual(['b', 'c'])
  })

  test('that do not fit are refused', async () => {
    const members = groupOf('big', [1, 0, 0, 0])
    const small = () => new ExperienceBuffer({ capacity: 3 })
    await refused(() => small().addTrajectory(members[0]!), 'CONFIG_INVALID', "'big'", 'more than 3', 'capacity')
    const unknown = members.map((one) => new Trajectory({ ...one, group: { id: 'big', size: null } }))
    await refused(() => small().addBatch(unknown), 'CONFIG_INVALID', "'big'", 'more than 3')
  })
})

describe('failed rollouts', () => {
  const group = () => [
    ...groupOf('g', [1, 0, 0, 0]).slice(0, 2),
    rollout({ rollout: 3, failed: 'TASK_THREW' }),
    rollout({ rollout: 4, failed: 'TASK_TIMEOUT', rewards: [2] }),
  ]
  const rewards = (buffer: ExperienceBuffer) => buffer.sampleBatch(9).map(({ reward }) => reward)

  test('are dropped, and the rest is compared without them', () => {
    const buffer = new ExperienceBuffer()
    expect(buffer.addBatch(group())).toBe(2)
    expect(rewards(buffer)).toEqual([1, 0])
    expect(buffer.sampleBatch(9).map(({ advantage }) => advantage)).toEqual([0.5, -0.5])
    expect(buffer.stats().added).toMatchObject({ held: 2, failed: 2 })
  })

  test('count 0, or less, where that is asked for', () => {
    const zero = new ExperienceBuffer({ failed: 'zero' })
    zero.addBatch(group())
    expect(rewards(zero)).toEqual([1, 0, 0, 0])
    const penalized = new ExperienceBuffer({ failed: { penalize: 0.5 } })
    penalized.addBatch(group())
    expect(rewards(penalized)).toEqual([1, 0, -0.5, -0.5])
    expect(penalized.sampleBatch(9).map(({ failed }) => failed)).toEqual([false, false, true, true])
  })

  test('are dropped in any case if it was not the agent that failed, or nobody can tell how good they are', () => {
    const buffer = new ExperienceBuffer({ failed: { penalize: 1 }, groupSize: 5 })
    const grade = { reward: null, success: null, grader: { name: 'judge' } }
    const added = [
      rollout({ rollout: 1, failed: 'WORLD_UNAVAILABLE' }),
      rollout({ rollout: 2, cancelled: true }),
      rollout({ rollout: 3, reward: null }),
      rollout({ rollout: 4, rewards: [1], more: { grade } }),
      rollout({ rollout: 5, rewards: [1] }),
    ].map((one) => buffer.addTrajectory(one))
    expect(added).toEqual(['lost', 'lost', 'ungraded', 'ungraded', 'held'])
    expect(rewards(buffer)).toEqual([1])
  })

  test('a group of which nothing is left is not there', () => {
    const buffer = new ExperienceBuffer({ groupSize: 2 })
    buffer.addBatch([1, 2].map((n) => rollout({ rollout: n, failed: 'TASK_THREW' })))
    expect(buffer.stats()).toMatchObject({ size: 0, groups: 0, openGroups: 0 })
  })

  test('the grade counts before what the environment says', () => {
    const buffer = new ExperienceBuffer()
    const grade = { reward: 0.25, success: false, grader: { name: 'judge' } }
    buffer.addTrajectory(rollout({ size: 1, rewards: [9], more: { grade } }))
    expect(rewards(buffer)).toEqual([0.25])
  })
})

test('tasks of the validation and test splits are left out, unless they are asked for', () => {
  const of = (split: 'train' | 'validation' | 'test' | null) => rollout({ group: `${split}`, size: 1, more: { split } })
  const all = [of('train'), of('validation'), of('test'), of(null)]
  const buffer = new ExperienceBuffer()
  expect(all.map((one) => buffer.addTrajectory(one))).toEqual(['held', 'held-out', 'held-out', 'held'])
  const asked = new ExperienceBuffer({ splits: ['validation'] })
  expect(all.map((one) => asked.addTrajectory(one))).toEqual(['held-out', 'held', 'held-out', 'held-out'])
})

describe('returns', () => {
  const returnsOf = (buffer: ExperienceBuffer) => buffer.sampleBatch(1).map(({ returns }) => [...returns!])

  test('are those of the reward at the end, so that a long way to it does not pay', () => {
    const buffer = new ExperienceBuffer()
    buffer.addTrajectory(rollout({ size: 1, rewards: [0, 0, 1] }))
    expect(buffer.sampleBatch(1)[0]!.returns).toBeUndefined()
    buffer.computeReturns(0.5)
    expect(returnsOf(buffer)).toEqual([[0.25, 0.5, 1]])
  })

  test('or of the rewards of steps, with the values that other programs give', () => {
    const buffer = new ExperienceBuffer()
    buffer.addTrajectory(rollout({ size: 1, rewards: [1, 2, 3] }))
    buffer.computeReturns(0.5, 'steps')
    expect(returnsOf(buffer)).toEqual([[2.75, 3.5, 3]])
  })

  test('lose no reward of a step that is no decision; the penalty of a failure is its whole reward', () => {
    const [first, second] = rollout({ rewards: [1, 2] }).steps
    const note = { index: 1, atMs: 1, kind: 'note', reward: 10 } as const
    const before = { ...note, index: 0, reward: 100 }
    const steps = [
      before,
      { ...first!, index: 1 },
      { ...note, index: 2 },
      { ...second!, index: 3 },
      { ...note, index: 4 },
    ]
    const buffer = new ExperienceBuffer({ failed: { penalize: 5 } })
    buffer.addTrajectory(rollout({ size: 1, failed: 'TASK_THREW', more: { steps } }))
    buffer.computeReturns(1, 'steps')
    expect(returnsOf(buffer)).toEqual([[-5, -116]])
  })
})

describe('samples', () => {
  test('are the same for the same seed, and go on where a resumed training left off', () => {
    const draw = (buffer: ExperienceBuffer) => Array.from({ length: 5 }, () => idsOf(buffer.sampleBatch(20)))
    const of = (options: ConstructorParameters<typeof ExperienceBuffer>[0]) => fill(new ExperienceBuffer(options), 100)
    const first = of({ seed: 7 })
    const batches = draw(first)
    expect(draw(of({ seed: 7 }))).toEqual(batches)
    expect(draw(of({ seed: 8 }))).not.toEqual(batches)
    expect(new Set(batches.map(String)).size).toBe(5)
    expect(draw(of({ seed: 7, draws: first.draws }))).toEqual(draw(first))
  })

  test('do not depend on the order in which rollouts were finished', () => {
    const all = Array.from({ length: 40 }, (_, at) => groupOf(`g${at}`, [at / 3, 0.1, 0.2, 0.7])).flat()
    const of = (list: readonly Trajectory[]) => {
      const buffer = new ExperienceBuffer({ seed: 'x', capacity: 100 })
      buffer.addBatch(list)
      return buffer.sampleBatch(30).map(({ trajectory, advantage }) => [trajectory.id, advantage])
    }
    fc.assert(
      fc.property(
        fc.shuffledSubarray(all, { minLength: all.length }),
        (list) => void expect(of(list)).toEqual(of(all)),
      ),
      { numRuns: 20 },
    )
  })

  test('take every group with the same probability', () => {
    const buffer = fill(new ExperienceBuffer(), 10)
    const counts = new Map<string, number>()
    for (let at = 0; at < 3000; at++)
      for (const { id } of buffer.sampleGroups(3)) counts.set(id, (counts.get(id) ?? 0) + 1)
    // Each is in 900 of 3,000 samples, with a deviation of 25.
    expect(counts.size).toBe(10)
    for (const count of counts.values()) expect(Math.abs(count - 900)).toBeLessThan(125)
  })

  test('have fewer trajectories if there are no more, each once', () => {
    const buffer = fill(new ExperienceBuffer(), 3)
    expect(new Set(idsOf(buffer.sampleBatch(1000))).size).toBe(12)
    expect(buffer.sampleBatch(5)).toHaveLength(8)
    expect(new ExperienceBuffer().sampleBatch(5)).toEqual([])
  })
})

/** Groups whose members come somewhat out of order, so that several are open. Some members fail, and some groups do not say how large they are. */
const arrivals = fc
  .record({
    groups: fc.array(
      fc.record({
        size: fc.integer({ min: 1, max: 6 }),
        fails: fc.integer({ min: -3, max: 3 }),
        known: fc.integer({ min: 0, max: 3 }),
      }),
      { minLength: 5, maxLength: 40 },
    ),
    delays: fc.array(fc.integer({ min: 0, max: 20 }), { minLength: 240, maxLength: 240 }),
  })
  .map(({ groups, delays }) => {
    const members = groups.flatMap(({ size, fails, known }, at) =>
      Array.from({ length: size }, (_, place) =>
        rollout({
          ...{ group: `g${at}`, size: known > 0 ? size : null, rollout: place + 1 },
          ...(place < fails && { failed: 'TASK_THREW' }),
          more: { meta: { kept: size - Math.min(size, Math.max(0, fails)) } },
        }),
      ),
    )
    const late = members.map((member, place) => ({ member, at: place + delays[place]! }))
    return late.sort((a, b) => a.at - b.at).map(({ member }) => member)
  })

test('whatever comes: the capacity is never exceeded, and no group is ever split', () => {
  const seen = { evicted: 0, abandoned: 0, groups: 0 }
  fc.assert(
    fc.property(
      arrivals,
      fc.integer({ min: 6, max: 40 }),
      fc.integer({ min: 1, max: 10 }),
      fc.integer({ min: 0, max: 20 }),
      (list, capacity, maxOpenGroups, unpacked) => {
        const buffer = new ExperienceBuffer({ capacity, maxOpenGroups, unpacked })
        for (const trajectory of list) {
          buffer.addTrajectory(trajectory)
          const { size, openGroups } = buffer.stats()
          expect(size).toBeLessThanOrEqual(capacity)
          expect(openGroups).toBeLessThanOrEqual(maxOpenGroups)
          const groups = Map.groupBy(buffer.sampleBatch(7), (one) => one.trajectory.group!.id)
          for (const members of groups.values()) expect(members).toHaveLength(Number(members[0]!.trajectory.meta.kept))
        }
        const { size, evicted, abandoned, added } = buffer.stats()
        expect(size + evicted + abandoned).toBe(added.held)
        const all = [...buffer.groups()]
        for (const { members } of all) expect(members).toHaveLength(Number(members[0]!.trajectory.meta.kept))
        seen.evicted += evicted
        seen.abandoned += abandoned
        seen.groups += all.length
      },
    ),
    { numRuns: 300 },
  )
  // It was about something.
  for (const count of Object.values(seen)) expect(count).toBeGreaterThan(100)
})

test('trajectories come back from a packed group exactly as they were', () => {
  fc.assert(
    fc.property(fc.array(trajectories, { minLength: 1, maxLength: 4 }), (some) => {
      const given = some.map((one, place) => {
        const { ...parts } = one
        const ending = { kind: 'terminated' } as const
        return new Trajectory({
          ...(parts as Trajectory),
          ...{
            id: `t@${place + 1}`,
            rollout: place + 1,
            task: 't',
            split: null,
            group: { id: 'g', size: some.length },
          },
          ...{ visit: 0, run: 'r', ending, grade: null, episode: { reward: place, success: null } },
        })
      })
      const buffer = new ExperienceBuffer({ unpacked: 0 })
      buffer.addBatch(given)
      expect(buffer.stats().packedBytes).toBeGreaterThan(0)
      expect(buffer.sampleBatch(1).map(({ trajectory }) => trajectory)).toStrictEqual(given)
    }),
  )
})

test('what cannot be packed is held as it came', () => {
  const buffer = new ExperienceBuffer({ unpacked: 0 })
  const answer = () => {}
  buffer.addTrajectory(rollout({ size: 1, more: { answer } }))
  expect(buffer.sampleBatch(1)[0]!.trajectory.answer).toBe(answer)
  expect(buffer.stats()).toMatchObject({ size: 1, packedBytes: 0 })
})

describe('the work of an operation does not grow with what is held', () => {
  /** How often anything of these trajectories is looked at. */
  let looks = 0
  const watched = (trajectory: Trajectory) =>
    new Proxy(trajectory, {
      get: (target, key) => {
        looks++
        return Reflect.get(target, key)
      },
    })
  const during = (work: () => unknown) => {
    looks = 0
    work()
    return looks
  }

  /** Looks during each operation on a full buffer. */
  function costs(capacity: number) {
    const buffer = new ExperienceBuffer({ capacity, unpacked: Number.POSITIVE_INFINITY })
    for (let at = 0; at < capacity / 4; at++)
      for (const one of groupOf(`g${at}`, [1, 0, 0, 0])) buffer.addTrajectory(watched(one))
    const next = groupOf('next', [1, 0, 0, 0]).map(watched)
    const found = {
      adds: next.map((one) => during(() => buffer.addTrajectory(one))),
      sample: during(() => buffer.sampleBatch(32)),
      returns: during(() => buffer.computeReturns(0.9)),
      sampleWithReturns: during(() => buffer.sampleBatch(32)),
    }
    expect(buffer.stats()).toMatchObject({ size: capacity, evicted: 4 })
    return found
  }

  test('as much is looked at with 100 trajectories as with 30,000', () => {
    const few = costs(100)
    expect(costs(30_000)).toEqual(few)
    expect(few).toMatchObject({ returns: 0, sampleWithReturns: 64 })
  })

  test('a draw out of a million million takes as many random numbers as it gives', () => {
    let calls = 0
    const random = () => {
      calls++
      return 0.5
    }
    const drawn = new Set<number>()
    for (const number of drawDistinct(1e12, random)) if (drawn.add(number).size === 100) break
    expect(calls).toBe(100)
  })
})

test.each([
  [{ capacity: 0 }, '`capacity`', 'at least 1', '0'],
  [{ capacity: 1.5 }, '`capacity`', '1.5'],
  [{ failed: 'ignore' }, '`failed`', "'drop'"],
  [{ failed: { penalize: -1 } }, 'penalize'],
  [{ failed: { penalize: Number.NaN } }, 'penalize'],
  [{ size: 3 }, '`size`', 'capacity'],
  [{ advantages: 'grpo' }, '`advantages`'],
  [{ unpacked: -1 }, '`unpacked`'],
])('options that make no sense are refused: %j', async (options, ...words) => {
  await refused(() => new ExperienceBuffer(options as never), 'CONFIG_INVALID', ...(words as string[]))
})

test('calls that make no sense are refused', async () => {
  const buffer = new ExperienceBuffer({ advantages: () => ({ advantages: [[Number.NaN]] }) })
  await refused(() => buffer.addTrajectory(rollout({ size: 1 })), 'CONFIG_INVALID', '`advantages`', 'NaN', "'g'")
  await refused(() => buffer.sampleBatch(0), 'CONFIG_INVALID', '`size`')
  await refused(() => buffer.sampleGroups(Number.NaN), 'CONFIG_INVALID', '`count`')
  await refused(() => buffer.computeReturns(1.1), 'CONFIG_INVALID', '`discount`')
  await refused(() => buffer.computeReturns(0.9, 'reward' as never), 'CONFIG_INVALID', "'steps'")
})
