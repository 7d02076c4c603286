import { expect, test } from 'vitest'
import { type LoraPolicyOptions, lora } from '../../dist/train/lora/lora-policy.js'
import { sglang, vllm } from '../../dist/train/lora/served/servers.js'
import { algorithmOf } from '../../dist/train/pipeline/open-learner.js'
import { samplerMismatch } from '../../dist/train/pipeline/sampler-mismatch.js'
import { softmaxPolicy } from '../../dist/train/softmax/softmax-policy.js'

// No vLLM and no SGLang can be run here: this is the logic alone.
const server = { baseURL: 'http://127.0.0.1:8000/v1', folder: '/shared' }
const algorithm = (options: Partial<LoraPolicyOptions>, given = {}) =>
  algorithmOf({ algorithm: given } as never, lora({ base: 'some/model', ...options }))!

test('the ratio starts at the learner where another program or 16 bits sampled', () => {
  expect(algorithm({}).proximal).toBe('behavior')
  expect(algorithm({ serve: vllm(server) }).proximal).toBe('learner')
  expect(algorithm({ serve: sglang({ ...server, model: 'm' }) }).proximal).toBe('learner')
  expect(algorithm({ dtype: 'bfloat16' }).proximal).toBe('learner')
  expect(algorithm({ serve: vllm(server) }, { proximal: 'behavior' }).proximal).toBe('behavior')
})

const alarms = (learning: Parameters<typeof samplerMismatch>[2], klFromBehavior: number, max = 0, more = {}) =>
  samplerMismatch({ metrics: { klFromBehavior }, staleness: { mean: 0, max } }, { ...algorithm({}), ...more }, learning)

test('what two programs differ by is no alarm, what is more is', () => {
  const [exact, own, served] = [
    softmaxPolicy().learning,
    lora({ base: 'some/model' }).learning,
    lora({ base: 'some/model', serve: vllm(server) }).learning,
  ]
  // Engines in bf16 differ by about .002 nats per token.
  expect([alarms(exact, 0), alarms(own, 1e-6), alarms(served, 0.002)]).toEqual([[], [], []])
  expect(alarms(exact, 1e-6).join()).toMatch(
    /0\.00000100 nats|1\.00e-6 nats per decision.*depend only on the observation/,
  )
  expect(alarms(own, 0.002)).toHaveLength(1)
  expect(alarms(served, 0.2).join()).toMatch(/0\.200 nats per decision.*check that the server has the base model/)
})

test('later steps and older policies differ as they should', () => {
  const { learning } = softmaxPolicy()
  expect([alarms(learning, 1, 1), alarms(learning, 1, 0, { epochs: 2 })]).toEqual([[], []])
})
