import { expect, test } from 'vitest'
import { rowsOf } from '../../dist/train/episode-rows.js'
import { episodesOf } from '../../dist/train/episodes.js'
import { tokenLines } from '../../dist/train/token-lines.js'
import type { ModelStep, Sampling, Step, StepTokens } from '../../dist/trajectory/step.js'
import { rollout } from './rollout.ts'

interface Turn {
  readonly from?: number | null
  readonly tail?: readonly number[]
  readonly completion?: readonly number[]
  readonly sampling?: Partial<Sampling>
  readonly tokens?: Partial<StepTokens> | null
  readonly role?: ModelStep['role']
  readonly version?: number | null
}

const NOTHING_ELSE: Sampling = { temperature: 1, topP: 1, topK: -1, minP: 0, other: {} }

/** A call of a model that samples two tokens. */
function turn(index: number, of: Turn): Step {
  const { from = null, tail = [1, 2], completion = [7, 8], sampling, tokens = {}, role = 'agent', version = 4 } = of
  const known: StepTokens = {
    ...{ tokenizer: 't', from, tail: Int32Array.from(tail), completion: Int32Array.from(completion) },
    ...{ logProbs: Float64Array.from(completion, (id) => -id / 10), of: 'processed', constrained: false },
  }
  return {
    ...{
      index,
      atMs: 0,
      kind: 'model',
      role,
      server: { model: 'm' },
      finish: 'stop',
      cached: false,
      ms: 1,
      retries: 0,
    },
    policy: version === null ? null : { name: 'p', version },
    request: { from: null, keep: 0, added: [], tools: '', wire: '{}' },
    reply: { role: 'assistant', content: '', wire: '' },
    tokens: tokens === null ? null : { ...known, ...tokens },
    sampling: { ...NOTHING_ELSE, ...sampling },
  }
}

const said = (turns: readonly Turn[], more: { reward?: number; group?: string; place?: number } = {}) =>
  rollout({
    ...{ reward: more.reward ?? 1, group: more.group ?? 'g', rollout: more.place ?? 1, rewards: [] },
    more: { steps: turns.map((one, index) => turn(index, one)) },
  })

test('a conversation is one line: what the policy sampled is trained, all else is context', () => {
  const { lines, refused } = tokenLines(said([{}, { from: 0, tail: [3], completion: [9] }]))
  expect(refused).toEqual([])
  expect(lines).toHaveLength(1)
  expect({
    ...lines[0],
    ids: [...lines[0]!.ids],
    mask: [...lines[0]!.mask],
    logProbs: [...lines[0]!.logProbs],
  }).toEqual({
    ...{ ids: [1, 2, 7, 8, 3, 9], mask: [0, 0, 1, 1, 0, 1], logProbs: [0, 0, -0.7, -0.8, 0, -0.9] },
    ...{ temperature: 1, version: 4, count: 3 },
  })
})

test('judges, and models that are not the policy, are not trained', () => {
  expect(tokenLines(said([{ role: 'judge' }, { version: null }]))).toEqual({ lines: [], refused: [], drifted: 0 })
})

const REFUSED: Readonly<Record<string, [Turn, string]>> = {
  'no token ids': [{ tokens: null }, 'step 0 has no token ids'],
  'no log-probabilities': [
    { tokens: { logProbs: null } },
    'step 0 has no log-probabilities: the server did not return them',
  ],
  'an unknown prompt': [{ tokens: { promptUnknown: true } }, 'step 0 has no token ids of its prompt'],
  'a schema': [{ tokens: { constrained: true } }, 'step 0 was decoded under a grammar or schema'],
  top_p: [{ sampling: { topP: 0.9 } }, 'step 0 was sampled from a truncated distribution'],
  top_k: [{ sampling: { topK: 20 } }, 'step 0 was sampled from a truncated distribution'],
  'a penalty': [{ sampling: { other: { repetition_penalty: 1.1 } } }, 'step 0 was sampled with penalties'],
  'the best token': [{ sampling: { temperature: 0 } }, 'step 0 was sampled at temperature 0'],
  'an unknown temperature': [{ sampling: { temperature: null } }, 'step 0 was sampled at an unknown temperature'],
  'raw log-probabilities': [
    { sampling: { temperature: 0.7 }, tokens: { of: 'raw' } },
    'log-probabilities are without temperature',
  ],
}

test.each(Object.entries(REFUSED))('refused: %s', (_, [wrong, why]) => {
  const { lines, refused } = tokenLines(said([wrong]))
  expect(lines).toEqual([])
  expect(refused).toEqual([expect.stringContaining(why)])
})

test('raw log-probabilities are those of the sampler at temperature 1', () => {
  expect(tokenLines(said([{ tokens: { of: 'raw' } }])).lines).toHaveLength(1)
})

test('one refused call does not cost the others of its conversation', () => {
  const { lines, refused } = tokenLines(
    said([{ tokens: { constrained: true } }, { from: 0, tail: [3], completion: [9] }]),
  )
  expect([...lines[0]!.mask]).toEqual([0, 0, 0, 0, 0, 1])
  expect(refused).toHaveLength(1)
})

test('weights are shares of all tokens of the batch, whatever line they are in', () => {
  const batch = [
    said([{}], { reward: 1 }),
    said([{}, { from: 0, tail: [3], completion: [9, 9] }], { reward: 0, place: 2 }),
  ]
  const { groups, drifted } = episodesOf(batch, 'drop')
  expect(drifted).toBe(0)
  const byToken = rowsOf(groups, { name: 'grpo' }, 'actions', { mean: 0, weight: 0 }).rows
  expect(byToken.flatMap((row) => (row.kind === 'tokens' ? [...row.weight].filter(Boolean) : []))).toEqual(
    Array.from({ length: 6 }, () => 1 / 6),
  )
  const byEpisode = rowsOf(groups, { name: 'grpo' }, 'episodes', { mean: 0, weight: 0 }).rows
  expect(byEpisode.map((row) => row.kind === 'tokens' && Math.max(...row.weight))).toEqual([1 / 4, 1 / 8])
  const [first, second] = byToken
  expect(first!.kind === 'tokens' && [...first!.advantage]).toEqual([
    0,
    0,
    expect.closeTo(Math.SQRT1_2, 2),
    expect.closeTo(Math.SQRT1_2, 2),
  ])
  expect(second!.kind === 'tokens' && Math.min(...second!.advantage)).toBeCloseTo(-Math.SQRT1_2, 2)
})

test("advantages by 'best': the best of each group are imitated, also where all are right", () => {
  const batch = [
    ...[1, 0, 1].map((reward, i) => said([{}], { reward, group: 'mixed', place: i + 1 })),
    ...[1, 1].map((reward, i) => said([{}], { reward, group: 'right', place: i + 1 })),
    ...[0, 0].map((reward, i) => said([{}], { reward, group: 'wrong', place: i + 1 })),
  ]
  const { groups } = episodesOf(batch, 'drop')
  const all = rowsOf(groups, { name: 'best', atLeast: 0.5 }, 'actions', { mean: 0, weight: 0 })
  expect([all.rows.length, all.episodes, all.flat]).toEqual([4, 4, 1])
  const one = rowsOf(groups, { name: 'best', atLeast: 0.5, most: 1 }, 'actions', { mean: 0, weight: 0 })
  expect(one.rows).toHaveLength(2)
})
