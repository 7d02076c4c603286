import { execFile } from 'node:child_process'
import { hash } from 'node:crypto'
import { mkdtempSync } from 'node:fs'
import { rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import fc from 'fast-check'
import { describe, expect, onTestFinished, test } from 'vitest'
import { seeded } from '../../dist/random.js'
import { testLearner } from '../../dist/testing/learner.js'
import { exp, log, tanh } from '../../dist/train/exact-math.js'
import { gradientLearner } from '../../dist/train/gradient-learner.js'
import { runLearnerInThread } from '../../dist/train/learner-thread.js'
import { neuralCore } from '../../dist/train/neural/neural-core.js'
import { type NeuralPolicy, neuralPolicy } from '../../dist/train/neural/neural-policy.js'
import { packWeights } from '../../dist/train/neural/weights.js'
import { algorithmOf } from '../../dist/train/pipeline/open-learner.js'
import { loadPolicy, savePolicy } from '../../dist/train/policy-folder.js'
import { softmaxPolicy } from '../../dist/train/softmax/softmax-policy.js'
import { neuralKit, neuralLearns } from './learners/learners.ts'
import { ACTIONS, neuralRows } from './neural-rows.ts'

testLearner('of a neural policy', { learner: neuralLearns, open: (bytes) => neuralKit.openBytes(bytes) })

testLearner(
  'of a neural policy in a thread, with all that it can',
  {
    learner: () =>
      runLearnerInThread({
        module: new URL('./learners/learners.ts', import.meta.url),
        export: 'neuralLearns',
        options: {
          loss: { name: 'clip' as const, value: 0.5, entropy: 0.001, kl: 0.001 },
          ...{ epochs: 2, miniBatches: 3, clipNorm: 1, proximal: 'learner' as const },
        },
      }),
    open: (bytes) => neuralKit.openBytes(bytes),
  },
  // Mini-batches are drawn by the places of rows.
  { anyOrder: false },
)

const half = () => 0.5
const policy = neuralPolicy({ inputs: 2, actions: ACTIONS, hidden: [8] })

async function trained(of: NeuralPolicy = policy): Promise<Uint8Array> {
  const learner = gradientLearner(await neuralCore(of), { loss: { name: 'is', value: 1 }, lr: 0.1 })
  await learner.start({ seed: 1 })
  for (let i = 0; i < 3; i++) await learner.update({ rows: neuralRows(50, i) })
  return (await learner.publish()).bytes!
}

test('tanh is what Math has, to 14 digits, and the same on every machine', () => {
  const near = (x: number) => Math.abs(tanh(x) - Math.tanh(x)) <= Math.abs(Math.tanh(x)) * 2e-14
  fc.assert(fc.property(fc.double({ min: -25, max: 25, noNaN: true }), near))
  fc.assert(fc.property(fc.double({ min: -0.1, max: 0.1, noNaN: true }), near))
  for (const x of [0, 1e9, -1e9, Infinity, -Infinity, NaN]) expect(tanh(x), `tanh(${x})`).toBe(Math.tanh(x))
  expect([tanh(0.3), tanh(-1.5), tanh(0.01)]).toEqual(TANH)
})
const TANH = [0.29131261245159085, -0.9051482536448663, 0.00999966667999946]

describe('a neural policy', () => {
  test('chooses by chance until it has learned, among the candidates only', () => {
    const { act } = policy.openBytes(null)
    const random = seeded(3)
    const counts = new Map<unknown, number>()
    for (let i = 0; i < 3000; i++) {
      const candidates = [{ jump: 2 }, 'left']
      const { action, index, logProb, value } = act({ observation: [0.1, 0.2], candidates, mode: 'sample', random })
      expect(candidates[index!]).toBe(action)
      expect({ logProb, value }).toEqual({ logProb: log(0.5), value: 0 })
      counts.set(index, (counts.get(index) ?? 0) + 1)
    }
    expect([...counts.keys()].sort()).toEqual([0, 1])
    for (const count of counts.values()) expect(count).toBeGreaterThan(1350)
  })

  test('says the log-probabilities and values that its learner computes, to the last bit', async () => {
    const bytes = await trained()
    const { act } = policy.openBytes(bytes)
    const core = await neuralCore(policy, { from: bytes })
    const rows = neuralRows(40, 9).map((row, i) => {
      const { index, logProb, value } = act({ ...row, mode: 'sample', random: seeded(i) })
      return { row: { ...row, index: index! }, logProb, value }
    })
    const { logProbs, values } = await core.forward(
      rows.map(({ row }) => row),
      'current',
    )
    expect(logProbs.map(([logProb]) => logProb)).toEqual(rows.map(({ logProb }) => logProb))
    expect([...values!]).toEqual(rows.map(({ value }) => value))
    expect(new Set(values).size).toBeGreaterThan(30)
  })

  test('probabilities of the candidates add up to 1, and the best is taken when greedy', async () => {
    const { act } = policy.openBytes(await trained())
    const ask = (random: () => number) => act({ observation: [0.5, -0.5], candidates: ACTIONS, mode: 'sample', random })
    const said = new Map([0, 0.2, 0.4, 0.6, 0.8, 0.999].map((at) => [ask(() => at).index!, ask(() => at).logProb!]))
    expect([...said.values()].reduce((sum, logProb) => sum + exp(logProb), 0)).toBeCloseTo(1, 12)
    const [best] = [...said].sort((a, b) => b[1] - a[1])[0]!
    const greedy = act({ observation: [0.5, -0.5], candidates: ACTIONS, mode: 'greedy', random: half })
    expect(greedy).toMatchObject({ index: best, logProb: 0 })
  })

  test('reads what Gymnasium observes: lists of numbers, nested or not, and whole numbers', () => {
    const ask = (one: NeuralPolicy, observation: unknown) =>
      one.openBytes(null).act({ observation, candidates: [0, 1], mode: 'greedy', random: half }).action
    const actions: unknown[] = [0, 1]
    const box = neuralPolicy({ inputs: 4, actions })
    for (const observation of [
      [1, 2, 3, 4],
      [
        [1, 2],
        [3, 4],
      ],
      new Float32Array(4),
    ])
      expect(ask(box, observation)).toBe(0)
    for (const wrong of [[1, 2, 3], [1, 2, 3, 4, 5], [1, 2, 3, NaN], [1, 2, 3, '4'], 4, 'text', { a: 1 }, null])
      expect(() => ask(box, wrong)).toThrow(
        expect.objectContaining({
          code: 'POLICY_INVALID',
          message: expect.stringContaining('lists of 4 finite numbers'),
        }),
      )
    const discrete = neuralPolicy({ inputs: { oneHot: 16 }, actions })
    expect(ask(discrete, 15)).toBe(0)
    for (const wrong of [16, -1, 1.5, [1], '1'])
      expect(() => ask(discrete, wrong)).toThrow(
        expect.objectContaining({ code: 'POLICY_INVALID', message: expect.stringContaining('from 0 to 15') }),
      )
    const own = neuralPolicy({ inputs: { size: 2, of: (text: string) => [text.length] }, actions })
    expect(() => ask(own as NeuralPolicy, 'abc')).toThrow(
      expect.objectContaining({ message: expect.stringContaining('`inputs.of` of policy') }),
    )
  })

  test.each([
    [{ actions: [0, 1] }, /`inputs`/],
    [{ inputs: 0, actions: [0, 1] }, /`inputs`/],
    [{ inputs: 4 }, /either `actions`/],
    [{ inputs: 4, actions: [0], candidates: { size: 1, of: () => [1] } }, /either `actions`/],
    [{ inputs: 4, actions: [] }, /at least one/],
    [{ inputs: 4, actions: [1, 1] }, /twice/],
    [{ inputs: 4, actions: [1n] }, /plain JSON/],
    [{ inputs: 4, actions: [0], hidden: [0] }, /`hidden`/],
    [{ inputs: 4, actions: [0], hidden: [1e6, 1e6] }, /weights/],
    [{ inputs: 4, actions: [0], name: '' }, /`name`/],
  ])('refuses options that cannot be: %o', (options, message) => {
    expect(() => neuralPolicy(options as never)).toThrow(
      expect.objectContaining({ code: 'POLICY_INVALID', message: expect.stringMatching(message) }),
    )
  })

  test('opens in a worker by the hash of its bytes', async () => {
    const bytes = await trained()
    const sha256 = hash('sha256', bytes)
    const host = { signal: AbortSignal.abort(), blob: async () => bytes }
    const ref = { policy: 'neural', version: 3, digest: sha256, at: { blob: sha256 } }
    const question = { observation: [0.3, 0.1], candidates: ACTIONS, mode: 'sample' as const, random: half }
    expect((await policy.open(ref, host)).act!(question as never)).toEqual(policy.openBytes(bytes).act(question))
  })

  test('another seed begins with other weights, and the same seed with the same', async () => {
    const first = async (seed: number) => (await neuralCore(neuralPolicy({ inputs: 2, actions: [0], seed }))).weights()
    expect(await first(1)).toEqual(await first(1))
    expect(await first(1)).not.toEqual(await first(2))
  })

  test('bytes of another policy, cut or damaged ones are refused', async () => {
    const bytes = await trained()
    const refused = (damaged: Uint8Array, by: NeuralPolicy = policy) =>
      expect(() => by.openBytes(damaged)).toThrow(expect.objectContaining({ code: 'POLICY_INVALID' }))
    for (let length = 0; length < bytes.length; length += 31) refused(bytes.slice(0, length))
    refused(new Uint8Array([...bytes, 0]))
    for (const at of [0, 5, 14]) refused(bytes.with(at, bytes[at]! ^ 1))
    refused(packWeights(policy.settings, new Float64Array(77).fill(NaN)))
    const others = [{ inputs: 3 }, { actions: ['left', 'right'] }, { hidden: [9] }, { value: false }]
    for (const other of others) refused(bytes, neuralPolicy({ inputs: 2, actions: ACTIONS, hidden: [8], ...other }))
    refused(await (async () => (await neuralCore(policy)).state())())
  })
})

test('learns by PPO unless a training says otherwise, and its value head only where something needs it', () => {
  const settings = (algorithm: object, of: NeuralPolicy = policy) =>
    algorithmOf({ algorithm, learner: undefined, overlap: undefined } as never, of as never)
  expect(policy.learning.advantages).toMatchObject({ name: 'gae', normalize: true })
  expect(settings({})).toMatchObject({ loss: { name: 'clip', value: 0.5 }, epochs: 10, miniBatches: 8 })
  expect(settings({ epochs: 2, lr: 0.1 })).toMatchObject({ loss: { value: 0.5 }, epochs: 2, lr: 0.1 })
  expect(settings({ advantages: { name: 'grpo' } })).toMatchObject({ loss: { name: 'clip' }, epochs: 1 })
  expect(settings({ advantages: { name: 'grpo' } })!.loss.value).toBeUndefined()
  const without = neuralPolicy({ inputs: 2, actions: ACTIONS, value: false })
  expect(without.learning.advantages).toBeUndefined()
  expect(settings({}, without)).toMatchObject({ loss: { name: 'clip' }, epochs: 1 })
})

test('acts without jax-js, and says what to install when it should learn', async () => {
  const program = `
    import { registerHooks } from 'node:module'
    registerHooks({ resolve: (name, context, next) => next(name === '@jax-js/jax' ? '@jax-js/not-installed' : name, context) })
    const { neuralPolicy } = await import(${JSON.stringify(import.meta.resolve('../../dist/train/index.js'))})
    const policy = neuralPolicy({ inputs: 1, actions: ['a'] })
    console.log(policy.openBytes(null).act({ observation: [1], candidates: ['a'], mode: 'greedy' }).action)
    await policy.learning.core().catch(({ code, message }) => console.log(code, message))
  `
  const { stdout } = await promisify(execFile)(process.execPath, ['--input-type=module', '--eval', program])
  expect(stdout).toBe(
    'a\nPACKAGE_MISSING training a neural policy needs @jax-js/jax, which is not installed; run: npm install @jax-js/jax\n',
  )
})

describe('a neural policy in a folder', () => {
  const folder = () => {
    const path = mkdtempSync(join(tmpdir(), 'manyworlds-policy-'))
    onTestFinished(() => rm(path, { recursive: true }))
    return join(path, 'best')
  }

  test('acts in a program without workers, store or jax, by the actions that were saved', async () => {
    const bytes = await trained()
    const path = folder()
    await savePolicy(path, policy, { version: 3, bytes })
    const served = await loadPolicy(path)
    expect(served).toMatchObject({ name: 'neural', version: 3 })
    const observation = [0.7, -0.3]
    const { act } = policy.openBytes(bytes)
    expect(served.act({ observation })).toEqual(act({ observation, candidates: ACTIONS, mode: 'greedy', random: half }))
  })

  test('needs the code of functions of its own, and of the right kind', async () => {
    const own = neuralPolicy({ inputs: { size: 1, of: (text: string) => [text.length] }, actions: ['a', 'b'] })
    const path = folder()
    await savePolicy(path, own, { version: 0, bytes: (await neuralCore(own)).weights() })
    await expect(loadPolicy(path)).rejects.toMatchObject({ code: 'POLICY_INVALID', message: /custom inputs/ })
    await expect(loadPolicy(path, { policy: softmaxPolicy() })).rejects.toMatchObject({ code: 'POLICY_INVALID' })
    expect((await loadPolicy(path, { policy: own })).act({ observation: 'x' }).action).toBe('a')
  })
})
