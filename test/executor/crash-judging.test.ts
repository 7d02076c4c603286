import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, afterEach, beforeEach, describe, expect, test } from 'vitest'
import { Runners } from '../../dist/index.js'
import {
  asksAndCrashes,
  badSetup,
  ends,
  killedWhileItAnswers,
  killer,
  lateKiller,
  naps,
  outlives,
} from '../agents/crashes.ts'
import { pid } from '../agents/workers.ts'

/** Real crashes of real workers: who is charged, who is not, and that it comes to an end. */

let folder: string
let file: string
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'mw-crashes-'))
  file = join(folder, 'notes')
})
afterEach(() => rmSync(folder, { recursive: true }))
afterAll(() => Runners.shutdown())

const started = (what: string) => readFileSync(file, 'utf8').split(`${what}\n`).length - 1

test('the run time of a task that ended with its worker is known, also behind other tasks', async () => {
  const ms = 700
  const config = { workerNum: 1, concurrency: 1, maxAttempts: 1, store: false } as const
  const first = Array.from({ length: 4 }, () => naps.task({ file, ms: 50 }))
  const tasks = [
    ends.task({ ms, how: 'blocks' }, { id: 'blocks', timeoutMs: ms }),
    ends.task({ ms, how: 'exits' }, { id: 'exits' }),
    ends.task({ ms, how: 'crashes' }, { id: 'crashes' }),
    ends.task({ ms, how: 'crashes' }, { id: 'never', rerun: 'never' }),
  ]
  const responses = await Runners.runTask([...first, ...tasks], config)
  for (const id of ['blocks', 'exits', 'crashes', 'never']) {
    const { status, timing } = responses.get(id)!
    expect([id, status]).toEqual([id, id === 'blocks' ? 'timeout' : 'crashed'])
    expect(timing.runMs, id).toBeGreaterThanOrEqual(ms / 2)
  }
}, 60_000)

describe('a kill from outside', () => {
  const config = { workerNum: 1, concurrency: 1, store: false } as const

  test('of a stopped worker, before it has begun its only task, is not charged to that task', async () => {
    for (let round = 0; round < 3; round++) {
      const { answer } = await Runners.runTask(pid.task(1), config)
      process.kill(answer as number, 'SIGSTOP')
      const asked = Runners.runTask(naps.task({ file, ms: 1 }), config)
      // Time for the task to be sent. Nothing tells that a stopped process was sent something.
      await sleep(200)
      process.kill(answer as number, 'SIGKILL')
      expect(await asked).toMatchObject({ status: 'success', attempts: 1 })
    }
    expect(started('nap')).toBe(3)
  }, 60_000)

  test('of a worker that sends its answer is not charged to the task', async () => {
    const bytes = 40_000_000
    const response = await Runners.runTask(killedWhileItAnswers.task({ file, bytes }), config)
    expect([response.status, response.attempts, started('answers')]).toEqual(['success', 1, 2])
    expect((response.answer as string).length).toBe(bytes)
  }, 60_000)
})

describe('a task that crashes natively, alone in the run', () => {
  const config = { workerNum: 2, concurrency: 2, store: false, maxAttempts: 1 } as const
  const crashed = { status: 'crashed', attempts: 1, error: { code: 'WORKER_CRASHED' } }

  test('after a while is charged for the second time, alone', async () => {
    expect(await Runners.runTask(lateKiller.task({ file, ms: 500 }), config)).toMatchObject(crashed)
    expect(started('late')).toBe(2)
  }, 60_000)

  test('at once is charged for the second time that is known to be its own', async () => {
    expect(await Runners.runTask(killer.task({ file, n: 0 }), config)).toMatchObject(crashed)
    expect(started('killer')).toBe(3)
  }, 60_000)

  test('in the setup of its agent ends too', async () => {
    const response = await Runners.runTask(badSetup.withParams({ file }).task(undefined), config)
    expect(response).toMatchObject(crashed)
    expect(started('setup')).toBe(3)
  }, 60_000)
})

describe.each([1, 3])('with %i workers', (workerNum) => {
  const config = { workerNum, concurrency: 4, store: false, maxAttempts: 2, backoffMs: 10 } as const

  test.each([
    { what: 'the same sub-task each time, which ends first', napMs: 5, fresh: false },
    { what: 'another sub-task each time, which would end later', napMs: 300, fresh: true },
  ])(
    'a task that asks for $what, and takes its worker down',
    async ({ napMs, fresh }) => {
      const tasks = [
        asksAndCrashes.task({ file, napMs, fresh }, { id: 'culprit' }),
        ...Array.from({ length: 12 }, (_, n) => naps.task({ file, ms: 40 }, { id: `n${n}` })),
      ]
      const responses = await Runners.runTask(tasks, config)
      expect(responses.get('culprit')).toMatchObject({
        status: 'crashed',
        error: { code: 'WORKER_CRASHED' },
        attempts: 2,
      })
      for (const [id, response] of responses)
        if (id !== 'culprit') expect(response, id).toMatchObject({ status: 'success', attempts: 1 })
      // Twice before it is suspected, then alone; with a single worker its sub-tasks may be beside it even then.
      expect(started('parent')).toBeLessThanOrEqual(8)
    },
    60_000,
  )

  test('a task that waits for sub-tasks which take their workers down', async () => {
    const tasks = [
      outlives.task({ file, killers: 8 }, { id: 'parent', maxAttempts: 1 }),
      ...Array.from({ length: 6 }, (_, n) => naps.task({ file, ms: 40 }, { id: `n${n}` })),
    ]
    const responses = await Runners.runTask(tasks, { ...config, maxAttempts: 1 })
    const ends = Array.from({ length: 8 }, () => 'crashed')
    expect(responses.get('parent')).toMatchObject({ answer: ends, attempts: 1 })
    for (const [id, response] of responses) expect(response, id).toMatchObject({ status: 'success', attempts: 1 })
  }, 60_000)

  test('killers beside tasks that wait: each is charged, and nobody else', async () => {
    const tasks = [
      ...Array.from({ length: 3 }, (_, n) => outlives.task({ file, killers: 2 }, { id: `p${n}` })),
      ...Array.from({ length: 3 }, (_, n) => killer.task({ file, n }, { id: `k${n}` })),
      ...Array.from({ length: 6 }, (_, n) => naps.task({ file, ms: 40 }, { id: `n${n}` })),
    ]
    const responses = await Runners.runTask(tasks, { ...config, maxAttempts: 1 })
    for (const [id, { status, attempts }] of responses)
      expect([id, status, attempts]).toEqual([id, id.startsWith('k') ? 'crashed' : 'success', 1])
  }, 60_000)
})
