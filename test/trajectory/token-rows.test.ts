import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { moveRewards, rewardsOnTokens } from '../../src/trajectory/rewards.ts'
import type { ModelStep, Step } from '../../src/trajectory/step.ts'
import { hasTokens, tokenRows } from '../../src/trajectory/token-rows.ts'
import type { UntrainableCode } from '../../src/trajectory/trainable.ts'
import type { Trajectory } from '../../src/trajectory/trajectory.ts'
import { trajectories } from './arbitrary.ts'
import { made, model, placed } from './made.ts'

const sampled = ({ steps }: Trajectory) => steps.filter(hasTokens).filter(({ role }) => role === 'agent')

/** All ids up to and with the completion of a step. */
function idsOf(steps: readonly Step[], index: number): number[] {
  const step = steps[index]
  if (step?.kind !== 'model' || step.tokens === null) throw new Error('no tokens')
  const { from, tail, completion } = step.tokens
  return [...(from === null ? [] : idsOf(steps, from)), ...tail, ...completion]
}

describe('any trajectory', () => {
  test('has as many log-probabilities as completion ids', () => {
    fc.assert(
      fc.property(trajectories, (trajectory) => {
        for (const { tokens } of sampled(trajectory)) expect(tokens.logProbs!.length).toBe(tokens.completion.length)
      }),
    )
  })

  test('has every sampled token trained exactly once, and no other', () => {
    let shared = 0
    fc.assert(
      fc.property(trajectories, (trajectory) => {
        const { rows, refused } = tokenRows(trajectory)
        expect(refused).toEqual([])
        const times = new Map<number, number>()
        for (const { ids, mask, logProbs, spans } of rows) {
          expect([mask.length, logProbs.length]).toEqual([ids.length, ids.length])
          const expected = new Uint8Array(ids.length)
          for (const { step, start, end, isTrained } of spans) {
            const { completion, logProbs: told } = (trajectory.steps[step] as ModelStep).tokens!
            expect(ids.slice(start, end)).toEqual(completion)
            // A row has the tokens that the sampler had before it, exactly.
            expect([...ids.slice(0, end)]).toEqual(idsOf(trajectory.steps, step))
            if (!isTrained) {
              shared++
              continue
            }
            expected.fill(1, start, end)
            expect(logProbs.slice(start, end)).toEqual(told)
            times.set(step, (times.get(step) ?? 0) + 1)
          }
          expect(mask).toEqual(expected)
          for (let i = 0; i < mask.length; i++) if (mask[i] === 0) expect(logProbs[i]).toBe(0)
        }
        expect([...times.keys()].toSorted((a, b) => a - b)).toEqual(sampled(trajectory).map(({ index }) => index))
        expect([...times.values()].every((count) => count === 1)).toBe(true)
      }),
      { numRuns: 500 },
    )
    expect(shared, 'rows that share a beginning').toBeGreaterThan(20)
  })

  test('loses no reward to a mask', () => {
    let placed = 0
    fc.assert(
      fc.property(trajectories, (trajectory) => {
        const { rows } = tokenRows(trajectory)
        const { rewards, unplaced } = rewardsOnTokens(trajectory, rows)
        const total = trajectory.steps.reduce((sum, { reward = 0 }) => sum + reward, 0)
        const onTokens = rewards.reduce((sum, row) => sum + row.reduce((all, one) => all + one, 0), 0)
        expect(onTokens + unplaced).toBe(total)
        if (rows.some(({ mask }) => mask.includes(1))) expect(unplaced).toBe(0)
        for (const [row, { mask }] of rows.entries())
          for (const [i, reward] of rewards[row]!.entries()) {
            if (reward !== 0) expect(mask[i]).toBe(1)
            if (reward !== 0) placed++
          }
      }),
      { numRuns: 500 },
    )
    expect(placed).toBeGreaterThan(20)
  })
})

describe('rows of tokens', () => {
  test('follow a conversation: prompt, completion, what came between, the next completion', () => {
    const steps = placed(
      model({ tail: [1, 2], ids: [3, 4] }),
      { kind: 'tool', call: null, name: 't', arguments: { raw: '' }, result: 1, ms: 1, reward: 5 },
      model({ from: 0, tail: [5], ids: [6], reward: 1 }),
    )
    const { rows } = tokenRows({ steps })
    expect(rows.map(({ ids, mask }) => [[...ids], [...mask]])).toEqual([
      [
        [1, 2, 3, 4, 5, 6],
        [0, 0, 1, 1, 0, 1],
      ],
    ])
    expect([...rows[0]!.logProbs]).toEqual([0, 0, -0.5, -0.5, 0, -0.5])
    expect(rows[0]!.spans).toMatchObject([
      { step: 0, start: 2, end: 4, isTrained: true, policy: { version: 1 }, temperature: 0.7 },
      { step: 2, start: 5, end: 6, isTrained: true },
    ])
    const { rewards } = rewardsOnTokens(made(steps), rows)
    expect([...rewards[0]!], 'that of the tool stands on the token before it').toEqual([0, 0, 0, 5, 0, 1])
  })

  test('train a shared beginning in the first of them', () => {
    const steps = placed(model({ ids: [1] }), model({ from: 0, ids: [2] }), model({ from: 0, ids: [3], branch: 1 }))
    const { rows } = tokenRows({ steps })
    expect(rows.map(({ branch, ids, mask }) => [branch, [...ids], [...mask]])).toEqual([
      [0, [9, 1, 9, 2], [0, 1, 0, 1]],
      [1, [9, 1, 9, 3], [0, 0, 0, 1]],
    ])
  })

  test('leave out judges and simulated users', () => {
    const steps = placed(model({ role: 'judge' }), model({ role: 'user' }), model({ tokens: null }))
    expect(tokenRows({ steps })).toEqual({ rows: [], refused: [] })
  })

  test('have what may not be trained on as context, and say so; without the ids of a prompt there is no row', () => {
    const [silent, unknown] = [model({ from: 0, ids: [2] }), model({ ids: [5] })]
    const steps = placed(
      model({ ids: [1] }),
      { ...silent, tokens: { ...silent.tokens!, logProbs: null } },
      model({ from: 1, ids: [3] }),
      { ...unknown, tokens: { ...unknown.tokens!, promptUnknown: true } },
      model({ from: 3 }),
      model({ from: 7 }),
    )
    const { rows, refused } = tokenRows({ steps })
    expect(rows.map(({ ids, mask }) => [[...ids], [...mask]])).toEqual([
      [
        [9, 1, 9, 2, 9, 3],
        [0, 1, 0, 0, 0, 1],
      ],
    ])
    const why = 'step 3 has no token ids of its prompt: the server does not return them'
    expect(refused).toEqual([
      { step: 1, why: 'step 1 has no log-probabilities: the server did not return them' },
      { step: 3, why },
      { step: 4, why },
      { step: 5, why: 'step 5 continues the tokens of step 7, which has no tokens' },
    ])
  })

  test('train no call whose probabilities a learner cannot compute again, unless the learner asked for it', () => {
    const called = (more: object) => {
      const call = model({ ids: [1] })
      return placed({ ...call, sampling: { ...call.sampling, ...more } })
    }
    const call = model({ ids: [1] })
    const cases: Record<string, [Step[], RegExp]> = {
      GREEDY: [called({ temperature: 0 }), /temperature 0/],
      TRUNCATED: [called({ topK: 20 }), /truncated distribution/],
      PENALTIES: [called({ other: { logit_bias: { 5: -100 } } }), /penalties or a logit bias/],
      CONSTRAINED: [placed({ ...call, tokens: { ...call.tokens!, constrained: true } }), /grammar or schema/],
      RAW_LOG_PROBS: [placed({ ...call, tokens: { ...call.tokens!, of: 'raw' } }), /without temperature/],
    }
    for (const [code, [steps, why]] of Object.entries(cases)) {
      expect(tokenRows({ steps }), code).toEqual({ rows: [], refused: [{ step: 0, why: expect.stringMatching(why) }] })
      const allowed = [code as UntrainableCode]
      expect(tokenRows({ steps }, { allowed }), code).toMatchObject({ rows: { length: 1 }, refused: [] })
    }
    expect(tokenRows({ steps: called({ other: { logit_bias: {}, presence_penalty: 0 } }) }).refused).toEqual([])
  })

  test('that would have more tokens than memory has room for are refused', () => {
    const long = model({ tail: Array.from({ length: 100_000 }, () => 1) })
    const steps = placed(long, ...Array.from({ length: 1100 }, () => model({ from: 0 })))
    expect(() => tokenRows({ steps })).toThrow('more than 100000000 tokens')
  })
})

describe('rewards', () => {
  test('that stand on tokens nobody sampled move to the last sampled one before them', () => {
    // With these, returns over sampled tokens are [6, ·, 3] for a discount of 1.
    expect([...moveRewards([1, 2, 3], [1, 0, 1])]).toEqual([3, 0, 3])
    expect([...moveRewards([1, 2, 3], [0, 0, 1])]).toEqual([0, 0, 6])
    expect([...moveRewards([1, 2, 3], [0, 0, 0])]).toEqual([1, 2, 3])
  })

  test('of the grade stand on the last token of all', () => {
    const grade = { reward: 0.5, success: true, grader: { name: 'g' } }
    const trajectory = made(placed(model({}), model({ from: 0 })), { grade })
    const { rows } = tokenRows(trajectory)
    expect([...rewardsOnTokens(trajectory, rows, 'grade').rewards[0]!]).toEqual([0, 0, 0, 0, 0, 0.5])
    expect(rewardsOnTokens(made([]), [], 'grade')).toEqual({ rewards: [], unplaced: 0 })
  })

  test('without a token to stand on are told', () => {
    expect(rewardsOnTokens(made(placed({ kind: 'note', reward: 3 })), [])).toEqual({ rewards: [], unplaced: 3 })
  })

  test('before the first token stand on it; those of a branch go to where it comes from', () => {
    const steps = placed({ kind: 'note', reward: 1 }, model({}), model({ ids: [7] }), {
      ...{ kind: 'note', branch: 1, reward: 10 },
      opens: [{ id: 1, agent: 'a', parent: { branch: 0, step: 1, why: 'drift' } }],
    })
    const trajectory = made(steps)
    const { rewards } = rewardsOnTokens(trajectory, tokenRows(trajectory).rows)
    expect(rewards.map((row) => [...row])).toEqual([
      [0, 0, 11],
      [0, 0],
    ])
  })
})
