import { hash } from 'node:crypto'
import { mkdtempSync } from 'node:fs'
import { readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import fc from 'fast-check'
import { describe, expect, onTestFinished, test } from 'vitest'
import { seeded } from '../../dist/random.js'
import { exp, expm1, log } from '../../dist/train/exact-math.js'
import { gradientLearner } from '../../dist/train/gradient-learner.js'
import { loadPolicy, savePolicy } from '../../dist/train/policy-folder.js'
import { softmaxCore } from '../../dist/train/softmax/softmax-core.js'
import { type SoftmaxPolicy, softmaxPolicy } from '../../dist/train/softmax/softmax-policy.js'
import { cpuMs } from '../support/cpu-ms.ts'
import { someRows } from './some-rows.ts'

async function trained<O, A>(policy: SoftmaxPolicy<O, A>, updates = 3): Promise<Uint8Array> {
  const learner = gradientLearner(softmaxCore(policy), { loss: { name: 'is' }, lr: 0.1 })
  await learner.start({ seed: 1 })
  for (let i = 0; i < updates; i++) await learner.update({ rows: someRows(50, i) })
  return (await learner.publish()).bytes!
}

const half = () => 0.5
const question = (seed: number) => {
  const { observation, candidates } = someRows(20, seed)[seed % 20]!
  return { observation, candidates }
}

describe('exp and log', () => {
  test('are what Math has, to the last bit or the one before it', () => {
    const near = (a: number, b: number) => a === b || Math.abs(a - b) <= Math.abs(b) * 2.3e-16
    fc.assert(fc.property(fc.double({ min: -740, max: 700, noNaN: true }), (x) => near(exp(x), Math.exp(x))))
    fc.assert(fc.property(fc.double({ min: 1e-300, max: 1e300, noNaN: true }), (x) => near(log(x), Math.log(x))))
    const close = (x: number) => Math.abs(expm1(x) - Math.expm1(x)) <= Math.abs(Math.expm1(x)) * 1e-14
    fc.assert(fc.property(fc.double({ min: -40, max: 40, noNaN: true }), close))
    fc.assert(fc.property(fc.double({ min: -0.05, max: 0.05, noNaN: true }), close))
  })

  test('have the edges that Math has', () => {
    for (const x of [0, -0, 1e9, -1e9, Infinity, -Infinity, NaN, 710, -745, -745.2, -746, 709.78])
      expect(exp(x), `exp(${x})`).toBe(Math.exp(x))
    for (const x of [0, 1, Infinity, NaN, -1, 5e-324, Number.MAX_VALUE]) expect(log(x), `log(${x})`).toBe(Math.log(x))
  })

  // These bits are a promise: a curve that another machine computes depends on them.
  test('give the numbers that they have always given', () => {
    expect([exp(-1), exp(-0.1), exp(-30.5), exp(0.3), log(3), log(7.25), log(0.3)]).toEqual([
      0.36787944117144233, 0.9048374180359595, 5.675685232632723e-14, 1.3498588075760032, 1.0986122886681096,
      1.9810014688665833, -1.2039728043259361,
    ])
  })
})

describe('a softmax policy', () => {
  test('chooses by chance until it has learned, and says with which probability', () => {
    const { act } = softmaxPolicy().openBytes(null)
    const random = seeded(3)
    const counts = [0, 0, 0, 0]
    for (let i = 0; i < 8000; i++) {
      const { index, logProb } = act({ observation: 'x', candidates: ['a', 'b', 'c', 'd'], mode: 'sample', random })
      counts[index!]!++
      expect(logProb).toBe(log(0.25))
    }
    for (const count of counts) expect(count).toBeGreaterThan(1850)
  })

  test('draws each candidate as often as its probability says', async () => {
    const policy = softmaxPolicy({ bits: 8 })
    const { act } = policy.openBytes(await trained(policy, 20))
    const random = seeded(5)
    const drawn = new Map<number, number>()
    const said = new Map<number, number>()
    for (let i = 0; i < 20_000; i++) {
      const { index, logProb } = act({ ...question(7), mode: 'sample', random })
      drawn.set(index!, (drawn.get(index!) ?? 0) + 1)
      said.set(index!, exp(logProb!))
    }
    let sum = 0
    for (const [index, probability] of said) {
      expect(Math.abs(drawn.get(index)! / 20_000 - probability)).toBeLessThan(0.015)
      sum += probability
    }
    expect(sum).toBeCloseTo(1, 12)
    expect(Math.min(...said.values())).toBeLessThan(0.3)
  })

  test('takes the best when it is greedy, the first of equals, with probability 1', async () => {
    const policy = softmaxPolicy({ bits: 8 })
    const blank = policy.openBytes(null).act({ observation: 0, candidates: [3, 4], mode: 'greedy', random: half })
    expect(blank).toEqual({ action: 3, index: 0, logProb: 0 })
    const { act } = policy.openBytes(await trained(policy, 20))
    const random = seeded(1)
    const probabilities = new Map<number, number>()
    for (let i = 0; i < 500; i++) {
      const { index, logProb } = act({ ...question(7), mode: 'sample', random })
      probabilities.set(index!, logProb!)
    }
    const best = [...probabilities].sort((a, b) => b[1] - a[1])[0]![0]
    expect(act({ ...question(7), mode: 'greedy', random })).toMatchObject({ index: best, logProb: 0 })
  })

  test('says the log-probability that its learner computes, to the last bit', async () => {
    const policy = softmaxPolicy({ bits: 9, value: true, temperature: 0.8 })
    const bytes = await trained(policy)
    const { act } = policy.openBytes(bytes)
    const core = softmaxCore(policy, { from: bytes })
    const rows = someRows(40, 9).map((row, i) => {
      const { index, logProb, value } = act({ ...row, mode: 'sample', random: seeded(i) })
      return { row: { ...row, index: index! }, logProb, value }
    })
    const { logProbs, values } = await core.forward(
      rows.map(({ row }) => row),
      'current',
    )
    expect(logProbs.map(([logProb]) => logProb)).toEqual(rows.map(({ logProb }) => logProb))
    expect([...values!]).toEqual(rows.map(({ value }) => value))
  })

  test('a higher temperature evens out, a lower one sharpens', async () => {
    const spread = async (temperature: number) => {
      const policy = softmaxPolicy({ bits: 8, temperature, features: (_: unknown, c: string) => [[c, 1]] as const })
      const learner = gradientLearner(softmaxCore(policy), { loss: { name: 'reinforce' }, lr: 1 })
      await learner.start({ seed: 1 })
      await learner.update({ rows: [{ ...someRows(1)[0]!, candidates: ['a', 'b'], index: 0, advantage: 1 }] })
      const { act } = policy.openBytes((await learner.publish()).bytes)
      return exp(act({ observation: 0, candidates: ['a', 'b'], mode: 'sample', random: () => 0 }).logProb!)
    }
    // One step of Adam moves both weights by lr.
    expect(await spread(1)).toBeCloseTo(1 / (1 + Math.exp(-2)), 6)
    expect(await spread(4)).toBeCloseTo(1 / (1 + Math.exp(-0.5)), 6)
  })

  test('the order in which an observation was made, and of its keys, does not matter', async () => {
    const policy = softmaxPolicy({ bits: 8 })
    const { act } = policy.openBytes(await trained(policy))
    const ask = (observation: unknown) =>
      act({ observation, candidates: ['go left', 'go right'], mode: 'sample', random: half })
    expect(ask({ text: 'left', at: [1, 2] })).toEqual(ask({ at: [1, 2], text: 'left' }))
    expect(ask({ text: 'left', at: [1, 2] }).logProb).not.toBe(ask({ text: 'left', at: [2, 1] }).logProb)
  })

  test('reads observations of any size in bounded time', () => {
    const { act } = softmaxPolicy().openBytes(null)
    let deep: unknown = 'end'
    for (let i = 0; i < 100_000; i++) deep = [deep]
    const observation = {
      text: 'word '.repeat(200_000),
      numbers: new Float64Array(1e6),
      deep,
      odd: [NaN, Infinity, null],
    }
    const start = cpuMs()
    const { logProb } = act({ observation, candidates: ['a b', 'c', deep], mode: 'sample', random: half })
    expect(logProb).toBe(-log(3))
    expect(cpuMs() - start).toBeLessThan(2000)
  })

  test('says what is wrong when it is asked what it cannot answer', () => {
    const { act } = softmaxPolicy({ name: 'mine' }).openBytes(null)
    for (const candidates of [undefined, []])
      expect(() => act({ observation: 0, candidates, mode: 'sample', random: half })).toThrow(
        expect.objectContaining({ code: 'ACTION_INVALID', message: expect.stringContaining("'mine'") }),
      )
    const nan = softmaxPolicy({ features: () => [['x', NaN]] }).openBytes(null)
    expect(() => nan.act({ observation: 0, candidates: [1], mode: 'sample', random: half })).toThrow(
      expect.objectContaining({ code: 'POLICY_INVALID', message: expect.stringContaining('["x",null]') }),
    )
    for (const options of [{ bits: 3 }, { bits: 25 }, { temperature: 0 }, { name: '' }, { features: 'words' as never }])
      expect(() => softmaxPolicy(options)).toThrow(expect.objectContaining({ code: 'POLICY_INVALID' }))
  })
})

describe('the bytes of a version', () => {
  const policy = softmaxPolicy({ bits: 8 })

  test('open in a worker by their hash, through the host', async () => {
    const bytes = await trained(policy)
    const sha256 = hash('sha256', bytes)
    const asked: string[] = []
    const blob = async (name: string) => {
      asked.push(name)
      return bytes
    }
    const host = { signal: AbortSignal.abort(), blob }
    const ref = { policy: 'softmax', version: 3, digest: sha256, at: { blob: sha256 } }
    const open = await policy.open(ref, host)
    const random = () => 0.9
    expect(open.act!({ ...question(2), mode: 'sample', random } as never)).toEqual(
      policy.openBytes(bytes).act({ ...question(2), mode: 'sample', random }),
    )
    expect(asked).toEqual([sha256])
    await policy.open({ policy: 'softmax', version: 0, digest: null, at: null }, host)
    expect(asked).toEqual([sha256])
    await expect(async () => policy.open({ ...ref, at: { served: 'x', model: 'y' } }, host)).rejects.toMatchObject({
      code: 'POLICY_INVALID',
    })
  })

  test('are refused when they are damaged, cut, or of another policy', async () => {
    const bytes = await trained(policy)
    const refused = (damaged: Uint8Array, by = policy as SoftmaxPolicy) =>
      expect(() => by.openBytes(damaged)).toThrow(expect.objectContaining({ code: 'POLICY_INVALID' }))
    for (let length = 0; length < bytes.length; length += 13) refused(bytes.slice(0, length))
    refused(new Uint8Array([...bytes, 0]))
    refused(bytes.map((byte, at) => (at === 0 ? byte ^ 1 : byte)))
    for (const other of [{ bits: 9 }, { temperature: 2 }, { value: true }, { features: () => [] }])
      refused(bytes, softmaxPolicy(other))
    // A weight that is NaN: the last eight bytes.
    refused(Uint8Array.from([...bytes.slice(0, -8), 0, 0, 0, 0, 0, 0, 0xf8, 0x7f]))
  })

  test('are the same on every machine: the hash of a training is known', async () => {
    expect(hash('sha256', await trained(softmaxPolicy({ bits: 8, value: true })))).toBe(KNOWN)
  })
})
const KNOWN = 'b1cdc222e2cf7c278cc22b3f6fd7508650ce7fee748a877f6fc86b1329773979'

describe('a policy in a folder', () => {
  const folder = () => {
    const path = mkdtempSync(join(tmpdir(), 'manyworlds-policy-'))
    onTestFinished(() => rm(path, { recursive: true }))
    return join(path, 'best')
  }

  test('acts in a program without workers or store', async () => {
    const policy = softmaxPolicy({ bits: 8, value: true, temperature: 2 })
    const bytes = await trained(policy)
    const path = folder()
    await savePolicy(path, policy, { version: 3, bytes })
    const served = await loadPolicy(path)
    expect(served).toMatchObject({ name: 'softmax', version: 3 })
    const { act } = policy.openBytes(bytes)
    const random = () => 0.3
    expect(served.act(question(4))).toEqual(act({ ...question(4), mode: 'greedy', random }))
    expect(served.act({ ...question(4), mode: 'sample', random })).toEqual(
      act({ ...question(4), mode: 'sample', random }),
    )
  })

  test('is replaced by a newer version, and keeps no old weights', async () => {
    const policy = softmaxPolicy({ bits: 8 })
    const path = folder()
    for (const version of [1, 2]) await savePolicy(path, policy, { version, bytes: await trained(policy, version) })
    expect((await loadPolicy(path)).version).toBe(2)
    expect(await readdir(path)).toHaveLength(2)
  })

  test('needs the code of features of its own', async () => {
    const policy = softmaxPolicy({ name: 'own', features: (o: number, c: number) => [`${o}.${c}`] })
    const path = folder()
    const { bytes } = await gradientLearner(softmaxCore(policy), { loss: { name: 'is' }, lr: 1 }).start({ seed: 1 })
    await savePolicy(path, policy, { version: 0, bytes: bytes! })
    await expect(loadPolicy(path)).rejects.toMatchObject({ code: 'POLICY_INVALID', message: /custom features/ })
    expect((await loadPolicy(path, { policy })).act({ observation: 1, candidates: [2, 3] }).action).toBe(2)
  })

  test('is refused where it is damaged or missing, with the reason', async () => {
    const policy = softmaxPolicy({ bits: 8 })
    const path = folder()
    await expect(loadPolicy(path)).rejects.toMatchObject({ code: 'POLICY_INVALID', message: /ENOENT/ })
    const bytes = await trained(policy)
    await expect(savePolicy(path, policy, { version: 1, bytes: bytes.slice(1) })).rejects.toMatchObject({
      code: 'POLICY_INVALID',
    })
    await savePolicy(path, policy, { version: 1, bytes })
    const file = join(path, `${hash('sha256', bytes)}.weights`)
    await writeFile(
      file,
      bytes.map((byte) => byte ^ 1),
    )
    await expect(loadPolicy(path)).rejects.toMatchObject({ code: 'POLICY_INVALID', message: /damaged/ })
    await rm(file)
    await expect(loadPolicy(path)).rejects.toMatchObject({ code: 'POLICY_INVALID', message: /ENOENT/ })
    const description = await readFile(join(path, 'policy.json'), 'utf8')
    await writeFile(join(path, 'policy.json'), description.replace('softmax', 'other'))
    await expect(loadPolicy(path)).rejects.toMatchObject({ code: 'POLICY_INVALID', message: /core/ })
  })

  test('a folder that cannot be written is one clear error', async () => {
    const policy = softmaxPolicy({ bits: 8 })
    const path = folder()
    await savePolicy(path, policy, { version: 1, bytes: await trained(policy) })
    const inTheWay = join(path, 'policy.json', 'x')
    await expect(savePolicy(inTheWay, policy, { version: 1, bytes: await trained(policy) })).rejects.toMatchObject({
      code: 'EXPORT_FAILED',
      message: /ENOTDIR/,
    })
  })
})
