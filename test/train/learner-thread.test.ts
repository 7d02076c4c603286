import { describe, expect, test } from 'vitest'
import { runLearnerInThread } from '../../dist/train/learner-thread.js'
import type { ActionRow } from '../../dist/train/row.js'

const module = new URL('./learners/learners.ts', import.meta.url)
const rows: ActionRow[] = [
  {
    ...{ kind: 'action', observation: 'x', candidates: ['a', 'b'], action: 'a', index: 0 },
    ...{ behaviour: Math.log(0.5), advantage: 1, weight: 1, version: 0 },
  },
]

const startFaulty = async (fault: string, options = {}) => {
  const learner = await runLearnerInThread({ module, export: 'faulty', options: fault }, options)
  return { learner, first: await learner.start({ seed: 1 }) }
}

describe('a learner that fails in its thread', () => {
  test.each([
    ['throws', /not to my taste/],
    ['returns NaN', /`loss` of its metrics is NaN/],
    ['returns nothing', /metrics must be numbers by name/],
  ])('%s: one error, and the last good version stays', async (fault, message) => {
    const { learner, first } = await startFaulty(fault)
    await using _ = learner
    const state = await learner.save()
    await expect(learner.update({ rows })).rejects.toMatchObject({
      code: 'LEARNER_FAILED',
      message: expect.stringMatching(message),
    })
    // It is still there: sent back, it publishes what it had.
    await learner.load(state)
    expect(await learner.publish()).toEqual(first)
  })

  test('after numbers that are not finite, nothing is published until a good state was loaded', async () => {
    const { learner, first } = await startFaulty('returns NaN')
    await using _ = learner
    const state = await learner.save()
    await expect(learner.update({ rows })).rejects.toThrow()
    await expect(learner.publish()).rejects.toMatchObject({ code: 'LEARNER_FAILED', message: /load/ })
    await expect(learner.save()).rejects.toMatchObject({ code: 'LEARNER_FAILED' })
    await learner.load(state)
    expect(await learner.publish()).toEqual(first)
  })

  test.each([
    ['exits', {}, /ended with exit code 3/],
    ['takes too much memory', { memoryMb: 64 }, /memory limit/],
    ['runs forever', { callMs: 500 }, /has not answered `update` within 500 ms/],
    ['never answers', { callMs: 500 }, /has not answered `update` within 500 ms/],
  ])('%s: open and later calls are told, and another thread goes on', async (fault, options, message) => {
    const { learner, first } = await startFaulty(fault, options)
    const state = await learner.save()
    const expected = { code: 'LEARNER_FAILED', message: expect.stringMatching(message) }
    await expect(learner.update({ rows })).rejects.toMatchObject(expected)
    await expect(learner.publish()).rejects.toMatchObject(expected)
    await learner.terminate()
    await using next = await runLearnerInThread({ module, export: 'learns' })
    expect((await next.start({ seed: 1, state })).ref).toEqual(first.ref)
    await next.update({ rows })
    expect((await next.publish()).ref.version).toBe(1)
  })

  test('terminate ends an update that is running', async () => {
    const { learner } = await startFaulty('runs forever')
    const update = learner.update({ rows })
    const told = expect(update).rejects.toMatchObject({ code: 'LEARNER_FAILED', message: /was terminated/ })
    await new Promise((resolve) => setTimeout(resolve, 100))
    await learner.terminate()
    await told
    await expect(learner.publish()).rejects.toMatchObject({ code: 'LEARNER_FAILED' })
  })
})

test.each([
  ['a module that is not there', { module: new URL('./nowhere.ts', import.meta.url), export: 'learns' }, /nowhere\.ts/],
  ['a name that is not exported', { module, export: 'lerns' }, /does not export a function 'lerns'/],
  ['something that is no learner', { module, export: 'notALearner' }, /without `update`/],
  ['a factory that throws', { module, export: 'refuses' }, /no learner today/],
  ['a path for a URL', { module: './learners.ts', export: 'learns' }, /must be a URL/],
  ['options that cannot be sent', { module, export: 'learns', options: { run: () => {} } }, /must be plain data/],
])('%s is refused before anything is learned', async (_, reference, message) => {
  await expect(runLearnerInThread(reference)).rejects.toMatchObject({
    code: 'LEARNER_INVALID',
    message: expect.stringMatching(message),
  })
})

test('rows that cannot be sent are refused, and the thread goes on', async () => {
  await using learner = await runLearnerInThread({ module, export: 'learns' })
  await learner.start({ seed: 1 })
  const unsendable = [{ ...rows[0]!, observation: () => {} }]
  await expect(learner.update({ rows: unsendable })).rejects.toMatchObject({ code: 'ROW_INVALID' })
  await learner.update({ rows })
  expect((await learner.publish()).ref.version).toBe(1)
})
