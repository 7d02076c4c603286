import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { promisify } from 'node:util'
import { describe, expect, test, vi } from 'vitest'
import { runLearnerInProcess } from '../../dist/train/learner-process.js'
import { runLearnerInThread } from '../../dist/train/learner-thread.js'
import type { ActionRow } from '../../dist/train/row.js'

const module = new URL('./learners/learners.ts', import.meta.url)
const rows: ActionRow[] = [
  {
    ...{ kind: 'action', observation: 'x', candidates: ['a', 'b'], action: 'a', index: 0 },
    ...{ behavior: Math.log(0.5), advantage: 1, weight: 1, version: 0 },
  },
]

describe.each([
  ['thread', runLearnerInThread],
  ['process', runLearnerInProcess],
])('in a %s', (_, runLearner) => {
  const startFaulty = async (fault: string, options = {}) => {
    const learner = await runLearner({ module, export: 'faulty', options: fault }, options)
    return { learner, first: await learner.start({ seed: 1 }) }
  }

  describe('a learner that fails', () => {
    test.each([
      ['throws', /not to my taste/],
      ['returns NaN', /metric `loss` is NaN/],
      ['returns nothing', /metrics must be an object of numbers/],
    ])('%s: one error, and the last good version stays', async (fault, message) => {
      const { learner, first } = await startFaulty(fault)
      await using _ = learner
      const state = await learner.save()
      await expect(learner.update({ rows })).rejects.toMatchObject({
        code: 'LEARNER_FAILED',
        message: expect.stringMatching(message),
      })
      // It is still there: sent back, it publishes what it had.
      expect(learner.ended).toBe(false)
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
      ['exits', {}, /exited with code 3/],
      ['takes too much memory', { memoryMb: 64 }, /memory limit/],
      // Also the calls before the update have no more time than that.
      ['runs forever', { learnerTimeoutMs: 3000 }, /did not answer `update` within 3000 ms/],
      ['never answers', { learnerTimeoutMs: 3000 }, /did not answer `update` within 3000 ms/],
    ])('%s: open and later calls are told, and another learner goes on', async (fault, options, message) => {
      const { learner, first } = await startFaulty(fault, options)
      const state = await learner.save()
      const expected = { code: 'LEARNER_FAILED', message: expect.stringMatching(message) }
      await expect(learner.update({ rows })).rejects.toMatchObject(expected)
      await expect(learner.publish()).rejects.toMatchObject(expected)
      expect(learner.ended).toBe(true)
      await learner.terminate()
      await using next = await runLearner({ module, export: 'learns' })
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
    [
      'a module that is not there',
      { module: new URL('./nowhere.ts', import.meta.url), export: 'learns' },
      /nowhere\.ts/,
    ],
    ['a name that is not exported', { module, export: 'lerns' }, /does not export a function 'lerns'/],
    ['something that is no learner', { module, export: 'notALearner' }, /`update` is missing/],
    ['a factory that throws', { module, export: 'refuses' }, /no learner today/],
    ['a path for a URL', { module: './learners.ts', export: 'learns' }, /must be a URL/],
    ['options that cannot be sent', { module, export: 'learns', options: { run: () => {} } }, /must be plain data/],
  ])('%s is refused before anything is learned', async (_, reference, message) => {
    await expect(runLearner(reference)).rejects.toMatchObject({
      code: 'LEARNER_INVALID',
      message: expect.stringMatching(message),
    })
  })

  test('rows that cannot be sent are refused, and the learner goes on', async () => {
    await using learner = await runLearner({ module, export: 'learns' })
    await learner.start({ seed: 1 })
    const unsendable = [{ ...rows[0]!, observation: () => {} }]
    await expect(learner.update({ rows: unsendable })).rejects.toMatchObject({ code: 'ROW_INVALID' })
    await learner.update({ rows })
    expect((await learner.publish()).ref.version).toBe(1)
  })
})

test('a process that is killed fails the open call and later ones, and says that it ended', async () => {
  const learner = await runLearnerInProcess({ module, export: 'faulty', options: 'runs forever' })
  await learner.start({ seed: 1 })
  const told = expect(learner.update({ rows })).rejects.toMatchObject({
    code: 'LEARNER_FAILED',
    message: 'the process of the learner was killed by SIGKILL',
  })
  process.kill(learner.pid!, 'SIGKILL')
  await told
  expect(learner.ended).toBe(true)
  await expect(learner.publish()).rejects.toMatchObject({ code: 'LEARNER_FAILED' })
})

test('a process that computes is not killed, one that is stopped is', async () => {
  const limits = { silentMs: 4000 }
  const learner = await runLearnerInProcess({ module, export: 'faulty', options: 'computes for 6 s' }, limits)
  await learner.start({ seed: 1 })
  expect(await learner.update({ rows })).toEqual({ loss: 1 })
  process.kill(learner.pid!, 'SIGSTOP')
  await expect(learner.publish()).rejects.toMatchObject({
    code: 'LEARNER_FAILED',
    message: 'the process of the learner was killed, because it sent no heartbeat for 4 s',
  })
  expect(learner.ended).toBe(true)
})

test('a process ends with its driver, also when that is killed during an update', async () => {
  const program = `
    const { runLearnerInProcess } = await import(${JSON.stringify(import.meta.resolve('../../dist/train/index.js'))})
    const learner = await runLearnerInProcess({ module: ${JSON.stringify(String(module))}, export: 'faulty', options: 'runs forever' })
    await learner.start({ seed: 1 })
    learner.update({ rows: ${JSON.stringify(rows)} })
    console.log(learner.pid)
  `
  const driver = spawn(process.execPath, ['--input-type=module', '--eval', program], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const [text] = (await once(driver.stdout, 'data')) as [Buffer]
  const pid = Number(text.toString())
  expect(isAlive(pid)).toBe(true)
  driver.kill('SIGKILL')
  await vi.waitFor(() => expect(isAlive(pid)).toBe(false), { timeout: 40_000 })
})

test('a program ends though it left its learner running', async () => {
  const program = `
    const { runLearnerInProcess } = await import(${JSON.stringify(import.meta.resolve('../../dist/train/index.js'))})
    const learner = await runLearnerInProcess({ module: ${JSON.stringify(String(module))}, export: 'learns' })
    await learner.start({ seed: 1 })
    console.log(learner.pid)
  `
  const { stdout } = await promisify(execFile)(process.execPath, ['--input-type=module', '--eval', program])
  await vi.waitFor(() => expect(isAlive(Number(stdout))).toBe(false), { timeout: 40_000 })
})

function isAlive(pid: number): boolean {
  try {
    // A zombie has been killed as well: nobody has waited for it yet.
    return !/^\d+ \(.*\) Z/.test(readFileSync(`/proc/${pid}/stat`, 'utf8'))
  } catch {
    return false
  }
}
