import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type Algorithm, grpo, type Learner, type TokenRow } from '../../dist/train/index.js'
import { tinkerWeights } from '../../dist/train/tinker/checkpoint.js'
import { type TinkerSampler, tinkerSampler } from '../../dist/train/tinker/sampler.js'
import type { TinkerOptions } from '../../dist/train/tinker/settings.js'
import { tinkerLearner } from '../../dist/train/tinker/tinker-learner.js'
import { refused } from '../support/refused.ts'
import { adamStep, untrained, VOCABULARY } from './tinker-model.ts'
import { distance, ourGradient, tokenRows } from './tinker-rows.ts'
import { KEY, TinkerServer } from './tinker-server.ts'
import { BASE, END } from './tinker-service.ts'

const CLIP: Algorithm = { loss: { name: 'clip' }, lr: 0.1, proximal: 'learner', epochs: 2, miniBatches: 2 }

let server: TinkerServer
beforeAll(async () => {
  process.env.TINKER_TEST_KEY = KEY
  server = await TinkerServer.start({ pendingPolls: 1 })
})
afterAll(() => server[Symbol.asyncDispose]())

const options = (on = server): TinkerOptions => ({
  ...{ base: BASE, rank: 4, apiKeyEnv: 'TINKER_TEST_KEY', baseURL: on.baseURL },
})

async function started(algorithm: Algorithm = CLIP, on = server): Promise<Learner> {
  const learner = tinkerLearner(options(on), algorithm)
  await learner.start({ seed: 1 })
  return learner
}

/** All that a sampler of a version says of some sequence. */
async function heard(bytes: Uint8Array | null): Promise<Float64Array> {
  await using sampler = await tinkerSampler(options(), bytes)
  return await sampler.logProbs([1, 2, 3, 4, 0, 5])
}

describe('a learner at Tinker', () => {
  it('takes the step that Adam takes with our own gradient', async () => {
    const optimizer = { beta1: 0.8, beta2: 0.9, eps: 1e-6, weightDecay: 0.1 }
    const algorithm: Algorithm = { loss: { name: 'is' }, lr: 0.05, clipNorm: 0.01 }
    const learner = tinkerLearner({ ...options(), optimizer }, algorithm)
    await learner.start({ seed: 1 })
    const rows = tokenRows(8, untrained().delta)
    const { gradientNorm, gradientScale } = await learner.update({ rows })
    const wanted = untrained()
    const { gradient } = ourGradient(rows, { name: 'is' }, wanted.delta)
    const params = { ...{ beta1: 0.8, beta2: 0.9, eps: 1e-6, weight_decay: 0.1 }, learning_rate: 0.05 }
    adamStep(wanted, gradient, { ...params, grad_clip_norm: 0.01 })
    expect(distance(server.last.trained.delta, wanted.delta)).toBeLessThan(1e-9)
    expect(gradientNorm).toBeCloseTo(Math.hypot(...gradient), 9)
    expect(gradientScale).toBeCloseTo(0.01 / gradientNorm!, 9)
    await learner[Symbol.asyncDispose]?.()
  })

  it('publishes versions as paths, which never change and can be sampled from', async () => {
    const learner = await started()
    const first = await learner.publish()
    expect(await learner.publish()).toEqual(first)
    expect(tinkerWeights(first.bytes!)).toMatchObject({ base: BASE, path: expect.stringMatching(/^tinker:/) })
    expect(await heard(first.bytes)).toEqual(await heard(null))
    await learner.update({ rows: tokenRows(8, untrained().delta) })
    const second = await learner.publish()
    expect([second.ref.version, second.ref.at]).toEqual([1, { blob: second.ref.digest }])
    expect(await heard(second.bytes)).not.toEqual(await heard(null))
    expect(await heard(first.bytes)).toEqual(await heard(null))
    await learner[Symbol.asyncDispose]?.()
  })

  for (const byLoad of [false, true])
    it(`goes on in another process as if nothing had been${byLoad ? ', where loading makes the model' : ''}`, async () => {
      await using own = await TinkerServer.start({ flags: { create_model_via_load_weights: byLoad } })
      const rows = tokenRows(12, untrained().delta)
      const learner = await started(CLIP, own)
      await learner.update({ rows })
      const [state, published] = [await learner.save(), await learner.publish()]
      const metrics = await learner.update({ rows })
      const { delta } = own.last.trained
      await learner[Symbol.asyncDispose]?.()

      const other = tinkerLearner(options(own), CLIP)
      expect(await other.start({ seed: 99, state })).toEqual(published)
      expect(own.count('create_model')).toBe(byLoad ? 1 : 2)
      expect(await other.update({ rows })).toEqual(metrics)
      expect(own.last.trained.delta).toEqual(delta)
      expect(own.last.trained.delta).not.toBe(delta)
      expect((await other.publish()).ref.version).toBe(2)
      await other[Symbol.asyncDispose]?.()
    })

  it('saves each version once, however often it is asked', async () => {
    await using own = await TinkerServer.start()
    const learner = await started({ loss: { name: 'is' }, lr: 0.1 }, own)
    for (let i = 0; i < 3; i++) {
      await learner.update({ rows: tokenRows(4, untrained().delta) })
      await learner.publish()
      await learner.save()
    }
    // Version 0 as well: an update that fails goes back to it.
    expect([own.count('save_weights'), own.count('save_weights_for_sampler')]).toEqual([4, 4])
    await learner[Symbol.asyncDispose]?.()
  })

  it('stays at its version when an update fails', async () => {
    await using own = await TinkerServer.start()
    const rows = tokenRows(12, untrained().delta)
    const learner = await started(CLIP, own)
    await learner.update({ rows })
    const [before, state] = [await learner.publish(), await learner.save()]
    own.fail('optim_step', { status: 422, body: { detail: 'not today' } })
    await refused(() => learner.update({ rows }), 'LEARNER_FAILED', 'version 1 was kept', 'HTTP 422', 'not today')
    expect(await learner.publish()).toEqual(before)
    expect(await learner.save()).toEqual(state)
    // The half of a gradient that the failed update had added is not in the next one.
    const metrics = await learner.update({ rows })
    const other = tinkerLearner(options(own), CLIP)
    await other.start({ seed: 1, state })
    expect(await other.update({ rows })).toEqual(metrics)
    await learner[Symbol.asyncDispose]?.()
    await other[Symbol.asyncDispose]?.()
  })

  it('does not go on from what is not its own, or is gone', async () => {
    await using own = await TinkerServer.start()
    const learner = await started(CLIP, own)
    const state = await learner.save()
    const other = (more: Partial<TinkerOptions> = {}) => tinkerLearner({ ...options(own), ...more }, CLIP)
    const start = (learner: Learner) => () => learner.start({ seed: 1, state })
    await refused(start(other({ rank: 8 })), 'LEARNER_INVALID', '`rank` 4', 'has 8')
    await refused(start(other({ base: 'toy/other' })), 'LEARNER_INVALID', '`base`')
    const { path } = JSON.parse(
      Buffer.from(state)
        .toString()
        .match(/\{"kind".*\}/)![0],
    ) as { path: string }
    own.service.forget(path)
    await refused(start(other()), 'LEARNER_FAILED', 'load_weights', 'no checkpoint tinker://')
    await refused(async () => tinkerWeights(Buffer.from('{}')), 'LEARNER_INVALID')
    await learner[Symbol.asyncDispose]?.()
  })
})

describe('a task of tokens', () => {
  const GROUPS = 10
  const MEMBERS = 16

  /** Say what comes after the prompt, then end. */
  const rewardOf = (prompt: number, ids: Int32Array) =>
    (ids[0] === (prompt + 1) % END ? 0.5 : 0) + (ids[1] === END ? 0.5 : 0)

  async function collect(sampler: TinkerSampler, version: number, seed: number) {
    const groups = await Promise.all(
      Array.from({ length: GROUPS }, async (_, group) => {
        const prompt = group % (VOCABULARY - 1)
        const request = { prompt: [prompt], maxTokens: 3, count: MEMBERS, seed: 1000 * seed + group }
        const samples = await sampler.sample(request)
        return samples.map((sample) => ({ ...sample, prompt, reward: rewardOf(prompt, sample.ids) }))
      }),
    )
    const { advantages } = grpo(groups.map((members) => members.map(({ reward }) => reward)))
    const tokens = groups.flat().reduce((sum, { ids }) => sum + ids.length, 0)
    const rows = groups.flatMap((members, group) =>
      members.flatMap(({ prompt, ids, logProbs }, i): TokenRow[] => {
        const advantage = advantages[group]?.[i] ?? 0
        const of = (value: number) => Float64Array.from([0, ...ids], () => value)
        const row = {
          kind: 'tokens',
          ids: Int32Array.of(prompt, ...ids),
          mask: Uint8Array.of(0, ...ids.map(() => 1)),
        } as const
        const weighted = {
          behavior: Float64Array.of(0, ...logProbs),
          advantage: of(advantage),
          weight: of(1 / tokens),
        }
        return [{ ...row, ...weighted, temperature: 1, version }]
      }),
    )
    const reward = groups.flat().reduce((sum, one) => sum + one.reward, 0) / groups.flat().length
    return { rows, reward }
  }

  it('is learned from end to end, by samples of each version', async () => {
    const learner = tinkerLearner(options(), { loss: { name: 'clip' }, lr: 0.3, epochs: 2 })
    let published = await learner.start({ seed: 1 })
    const rewards: number[] = []
    for (let epoch = 0; epoch < 20; epoch++) {
      await using sampler = await tinkerSampler(options(), published.bytes)
      const { rows, reward } = await collect(sampler, published.ref.version, epoch)
      rewards.push(reward)
      const metrics = await learner.update({ rows })
      // Behavior is what the sampler said: in the first epoch of an update the policy is where it was.
      expect(metrics.klFromBehavior).toBeLessThan(0.2)
      published = await learner.publish()
    }
    expect(published.ref.version).toBe(20)
    expect(rewards[0]).toBeLessThan(0.35)
    expect(rewards.at(-1)).toBeGreaterThan(0.9)
    await learner[Symbol.asyncDispose]?.()
  })
})
