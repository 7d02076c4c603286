import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { RunFile, tokenRows } from '../../dist/store/index.js'
import { manyworlds } from '../cli/manyworlds.ts'
import { type ModelServer, startModelServer } from '../models/scripted-server.ts'
import { startRolloutServer, type TestRollout } from './server.ts'

let server: ModelServer
let plain: ModelServer
beforeAll(async () => {
  server = await startModelServer({ seed: 3, dialect: 'vllm' })
  plain = await startModelServer({ seed: 3 })
})
afterAll(async () => {
  await server.close()
  await plain.close()
})

const modelOf = (model: string, from = server) => ({ baseURL: from.baseURL, model, logprobs: 'processed' })
const lengths = (rollouts: readonly TestRollout[]) => rollouts.map(({ rows }) => rows[0]!.completion_ids.length)

describe('manyworlds rollout-server', () => {
  it('answers with groups in the order of the request, with the tokens that the caller’s model sampled', async () => {
    const { ask, store } = await startRolloutServer()
    const answer = await ask({
      tasks: [
        { id: 'two', input: 'first', groundTruth: 1, metadata: { hard: true } },
        { input: 'second', groundTruth: 0 },
      ],
      ...{
        rollouts: 3,
        model: modelOf('tools:1'),
        sampling: { temperature: 0.9, top_p: 1, max_tokens: 77 },
        seed: 5,
      },
    })
    expect(answer).toMatchObject({ status: 200, store: expect.stringContaining(store) })
    expect(answer.groups.map(({ task }) => task)).toEqual(['two', 't2'])
    using run = RunFile.open(answer.run, { store })
    expect(run.overview()).toMatchObject({ status: 'finished' })
    for (const [place, { task, rollouts }] of answer.groups.entries()) {
      const ids = [task, `${task}@2`, `${task}@3`]
      expect(rollouts.map(({ trajectory, rollout }) => [trajectory, rollout])).toEqual(
        ids.map((id, at) => [id, at + 1]),
      )
      for (const { trajectory, rows, ...rest } of rollouts) {
        const parts = { right: { value: 1 - place, weight: 1 } }
        expect(rest).toMatchObject({
          reward: 1 - place,
          success: place === 0,
          error: null,
          refused: null,
          num_turns: 4,
          parts,
        })
        const stored = await run.task(trajectory)!.response!.toTrajectory()
        expect(stored.seed).toBe(5)
        const expected = tokenRows(stored).rows.map(({ ids, mask, logProbs }) => {
          const start = mask.indexOf(1)
          return {
            ...{ prompt_ids: [...ids.subarray(0, start)], completion_ids: [...ids.subarray(start)] },
            ...{ logprobs: [...logProbs.subarray(start)], env_mask: [...mask.subarray(start)] },
          }
        })
        expect(rows).toMatchObject(expected)
        expect(rows).toHaveLength(expected.length)
        expect(rows.length).toBeGreaterThan(0)
      }
    }
    const [request] = await server.requests({ model: 'tools:1' })
    expect(JSON.parse(request!.body)).toMatchObject({
      temperature: 0.9,
      top_p: 1,
      max_tokens: 77,
      return_token_ids: true,
    })
    // What was stored is what `export --format trl` gives.
    const trl = await manyworlds(['export', answer.run, '--dir', store, '--format', 'trl'])
    const exported = trl.stdout
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line) as { completion_ids: number[] })
    const sent = answer.groups.flatMap(({ rollouts }) => rollouts.flatMap(({ rows }) => rows))
    const sorted = (rows: readonly { readonly completion_ids: readonly number[] }[]) =>
      rows.map(({ completion_ids: ids }) => ids.join()).sort()
    expect(sorted(exported)).toEqual(sorted(sent))
  })

  it('gives a rollout that failed as data, and says why tokens cannot be trained', async () => {
    const { ask } = await startRolloutServer('--agent', 'moody')
    const model = { ...modelOf('text'), name: 'policy' }
    const { groups, status } = await ask({ tasks: [{ input: 'fail' }], rollouts: 3, model })
    expect(status).toBe(200)
    expect(groups[0]!.rollouts).toMatchObject([
      { reward: 1, error: null, refused: null },
      {
        ...{ reward: null, success: false, rows: [], refused: 'it failed or did not finish' },
        error: { code: 'TASK_THREW', message: expect.stringContaining('not in the mood') },
      },
      { reward: 1, error: null, refused: null },
    ])
    const untrained = await ask({ tasks: [{ input: 'x' }], model: { ...modelOf('text', plain), name: 'policy' } })
    expect(untrained.groups[0]!.rollouts).toMatchObject([
      { reward: 1, rows: [], refused: expect.stringContaining('has no token ids') },
    ])
    // `moody` samples at temperature 1, whatever a trainer computes with.
    const other = await ask({ tasks: [{ input: 'x' }], model, sampling: { temperature: 0.5 } })
    expect(other.groups[0]!.rollouts).toMatchObject([
      { rows: [], refused: expect.stringContaining('the request has 0.5') },
    ])
    // Which of its models is meant cannot be seen in an agent that has no such param.
    const unnamed = await ask({ tasks: [{ input: 'x' }], model: modelOf('text') })
    expect(unnamed).toMatchObject({ status: 400, error: { message: expect.stringContaining('`model.name`') } })
    const unreachable = await ask({
      ...{ tasks: [{ input: 'x' }], model: { name: 'policy', baseURL: 'http://127.0.0.1:1/v1', model: 'none' } },
      deadlineMs: 1000,
    })
    expect(unreachable.groups[0]!.rollouts).toMatchObject([{ reward: null, rows: [], error: { code: 'RUN_DEADLINE' } }])
  })

  it('refuses log-probabilities that are not those of what was sampled from', async () => {
    const { ask } = await startRolloutServer()
    const rolled = async (logprobs: string, temperature: number) => {
      const model = { ...modelOf('text'), logprobs }
      const { groups } = await ask({ tasks: [{ input: 'x' }], model, sampling: { temperature } })
      return groups[0]!.rollouts[0]!
    }
    const raw = await rolled('raw', 0.5)
    expect(raw).toMatchObject({ rows: [], refused: expect.stringContaining('without temperature') })
    for (const [logprobs, temperature] of [
      ['raw', 1],
      ['processed', 0.5],
    ] as const)
      expect(await rolled(logprobs, temperature)).toMatchObject({ refused: null, rows: { length: 1 } })
  })

  it('has an agent whose policy is a model call that of the caller', async () => {
    const { ask } = await startRolloutServer('--agent', 'adapted')
    const sampling = { temperature: 0.6 }
    const { groups } = await ask({ tasks: [{ input: 'x' }], rollouts: 2, model: modelOf('text'), sampling })
    expect(groups[0]!.rollouts).toMatchObject([
      { refused: null, reward: 1 },
      { refused: null, reward: 1 },
    ])
  })

  it('serves two callers at once, each with its own model', async () => {
    const { ask, store, output } = await startRolloutServer()
    const both = await Promise.all(
      ['latency:300+text:3', 'latency:300+text:9'].map((model) =>
        ask({ tasks: [{ input: 'a' }, { input: 'b' }], rollouts: 2, model: modelOf(model) }),
      ),
    )
    const [three, nine] = both.map(({ groups }) => groups.flatMap(({ rollouts }) => lengths(rollouts)))
    expect([Math.max(...three!) < Math.min(...nine!), three!.length, nine!.length]).toEqual([true, 4, 4])
    expect(new Set(both.map(({ run }) => run)).size).toBe(2)
    expect(RunFile.list({ store }).sort()).toEqual(both.map(({ run }) => run).sort())
    await expect.poll(() => output().match(/2 groups of 2 rollouts/g)).toHaveLength(2)
  })
})
