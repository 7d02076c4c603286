import { deepStrictEqual, notDeepStrictEqual, ok, rejects, strictEqual } from 'node:assert/strict'
import { hash } from 'node:crypto'
import { ManyworldsError } from '../errors.ts'
import type { Learner, Published } from '../train/learner.ts'
import { wrongMetric } from '../train/metrics.ts'
import { bandit, collect, type LearnerCase, type LearnerFactory, learn, lights, score } from './learner-kit.ts'

const SEED = 'kit'

/** Runs `use` with a started learner, and disposes of it. */
async function withLearner(
  kit: LearnerFactory,
  use: (learner: Learner, first: Published) => Promise<void>,
): Promise<void> {
  const learner = await kit.learner()
  try {
    await use(learner, await learner.start({ seed: SEED }))
  } finally {
    await learner[Symbol.asyncDispose]?.()
  }
}

export const learnerCases: readonly LearnerCase[] = [
  {
    name: 'it learns which of two arms pays',
    run: (kit) =>
      withLearner(kit, async (learner, first) => {
        const before = await score(kit, first, bandit)
        const after = await score(kit, await learn(kit, learner, bandit), bandit)
        ok(before < 0.65, `an untrained learner should get about 0.5 of the bandit, it got ${before}`)
        ok(after > 0.7, `after ${kit.updates} updates it should get almost 0.8 of the bandit, it got ${after}`)
      }),
  },
  {
    name: 'it learns that the right action depends on the observation',
    run: (kit) =>
      withLearner(kit, async (learner, first) => {
        const before = await score(kit, first, lights)
        const after = await score(kit, await learn(kit, learner, lights), lights)
        ok(before < 0.5, `an untrained learner should get about a third of the lights right, it got ${before}`)
        ok(after > 0.85, `after ${kit.updates} updates it should get almost all lights right, it got ${after}`)
      }),
  },
  {
    name: 'the same seed and the same batches give the same versions, bit for bit',
    run: async (kit) => {
      const digests: string[] = []
      for (const _ of [1, 2])
        await withLearner(kit, async (learner) => {
          digests.push((await learn(kit, learner, lights, 3)).ref.digest!)
        })
      strictEqual(digests[0], digests[1])
    },
  },
  {
    name: 'a saved state continues where it was, bit for bit',
    run: (kit) =>
      withLearner(kit, async (learner) => {
        const published = await learn(kit, learner, lights, 3)
        const state = await learner.save()
        const rows = await collect(kit, published, lights, 3)
        const metrics = await learner.update({ rows })
        const next = await learner.publish()
        const other = await kit.learner()
        try {
          const resumed = await other.start({ seed: SEED, state })
          deepStrictEqual(resumed.ref, published.ref)
          deepStrictEqual(await other.update({ rows }), metrics)
          deepStrictEqual((await other.publish()).ref, next.ref)
          deepStrictEqual(await other.save(), await learner.save())
        } finally {
          await other[Symbol.asyncDispose]?.()
        }
        await learner.load(state)
        await learner.update({ rows })
        deepStrictEqual((await learner.publish()).ref, next.ref, 'the same learner after loading its saved state')
      }),
  },
  {
    name: 'a published version never changes',
    run: (kit) =>
      withLearner(kit, async (learner, first) => {
        checkHash(first)
        const before = first.bytes && Uint8Array.from(first.bytes)
        const again = await learner.publish()
        deepStrictEqual(again, first, 'the same version twice')
        // The caller may change its copy of the bytes.
        again.bytes?.fill(0)
        const next = await learn(kit, learner, bandit, 2)
        checkHash(next)
        deepStrictEqual(first.bytes, before, 'the bytes of version 0 after two updates')
        strictEqual(first.ref.version, 0)
        strictEqual(next.ref.version, 2)
        notDeepStrictEqual(next.ref.digest, first.ref.digest)
        await learner.retire(first.ref)
        deepStrictEqual((await learner.publish()).ref, next.ref, 'after version 0 was retired')
      }),
  },
  {
    name: 'an empty batch changes nothing and makes no new version',
    run: (kit) =>
      withLearner(kit, async (learner) => {
        const published = await learn(kit, learner, bandit, 1)
        const state = await learner.save()
        const metrics = await learner.update({ rows: [] })
        strictEqual(wrongMetric(metrics), undefined)
        deepStrictEqual((await learner.publish()).ref, published.ref)
        deepStrictEqual(await learner.save(), state)
      }),
  },
  {
    name: 'a batch with a NaN is refused, and the last good version stays',
    run: (kit) =>
      withLearner(kit, async (learner) => {
        const published = await learn(kit, learner, bandit, 1)
        const state = await learner.save()
        const rows = await collect(kit, published, bandit, 1)
        for (const wrong of [{ advantage: NaN }, { weight: Infinity }, { behavior: NaN }, { index: 7 }]) {
          const spoiled = rows.map((row, at) => (at === 40 ? { ...row, ...wrong } : row))
          await rejects(learner.update({ rows: spoiled }), (error) => ManyworldsError.is(error), JSON.stringify(wrong))
          deepStrictEqual((await learner.publish()).ref, published.ref)
          deepStrictEqual(await learner.save(), state)
        }
        await learner.update({ rows })
        strictEqual((await learner.publish()).ref.version, published.ref.version + 1)
      }),
  },
  {
    name: 'an invalid state is refused, and the learner continues as before',
    run: (kit) =>
      withLearner(kit, async (learner) => {
        const published = await learn(kit, learner, bandit, 1)
        const state = await learner.save()
        for (const wrong of [new Uint8Array(0), state.slice(0, state.length - 1), new Uint8Array(state.length)])
          await rejects(learner.load(wrong), (error) => ManyworldsError.is(error))
        deepStrictEqual((await learner.publish()).ref, published.ref)
        deepStrictEqual(await learner.save(), state)
      }),
  },
]

export const anyOrderCase: LearnerCase = {
  name: 'the order of the rows changes only the last bits',
  run: async (kit) => {
    const seen: number[][] = []
    for (const turn of [(rows: readonly unknown[]) => rows, (rows: readonly unknown[]) => rows.toReversed()])
      await withLearner(kit, async (learner, first) => {
        const rows = turn(await collect(kit, first, lights, 0)) as Awaited<ReturnType<typeof collect>>
        await learner.update({ rows })
        seen.push((await collect(kit, await learner.publish(), lights, 1)).map(({ behavior }) => behavior))
      })
    const apart = seen[0]!.map((logProb, i) => Math.abs(logProb - seen[1]![i]!))
    ok(Math.max(...apart) < 1e-6, `log-probabilities differ by ${Math.max(...apart)}`)
  },
}

function checkHash({ ref, bytes }: Published): void {
  if (bytes === null) return
  strictEqual(ref.digest, hash('sha256', bytes), '`digest` must be the SHA-256 of the bytes')
  deepStrictEqual(ref.at, { blob: ref.digest })
}
