import { RetryableError, Runners, type TaskError } from 'manyworlds'
import { RunFile } from 'manyworlds/runs'
import { afterAll, describe, expect, it, vi } from 'vitest'
import { RETRY_AFTER_MAX_MS, retryOf } from '../../src/retry-errors.ts'
import {
  asksForTrying,
  exits,
  hangs,
  neverReady,
  readyLate,
  type Trying,
  throwsLater,
  tries,
  waitsWrong,
} from '../agents/retrying.ts'
import { query, storeFolder } from '../store/store-folder.ts'
import { refused } from '../support/refused.ts'

afterAll(() => Runners.shutdown())

const quick = { workerNum: 1, backoffMs: 1, store: false } as const
const attemptsOf = async (input: Trying, config: object = {}, own: object = {}) => {
  const { status, attempts, error } = await Runners.runTask(tries.task(input, own), { ...quick, ...config })
  return { status, attempts, ...(error && { name: error.name, code: error.code, message: error.message }) }
}

describe('an agent that throws a FatalError', () => {
  it('is not tried again, although attempts are left', async () => {
    const response = await Runners.runTask(tries.task({ throws: 'fatal' }), { ...quick, maxAttempts: 5 })
    expect(response).toMatchObject({ status: 'failed', attempts: 1 })
    expect(response.error).toMatchObject({
      ...{ code: 'TASK_THREW', name: 'FatalError', message: 'the key is not valid' },
      cause: { message: 'the key is not valid', cause: { status: 401 } },
    })
  })

  it('is recognized if the error comes from another copy of the package', async () => {
    expect(await attemptsOf({ throws: 'fatal of a copy' }, { maxAttempts: 5 })).toMatchObject({ attempts: 1 })
    expect(await attemptsOf({ throws: 'retryable of a copy' })).toMatchObject({ attempts: 3 })
  })

  it('is tried again if it is only the cause of what was thrown', async () => {
    expect(await attemptsOf({ throws: 'fatal as a cause' }, { maxAttempts: 2 })).toMatchObject({ attempts: 2 })
  })
})

describe('an agent that throws a RetryableError', () => {
  it('has three attempts where nobody set maxAttempts; other errors have one', async () => {
    expect(await attemptsOf({ throws: 'retryable', until: 3 })).toEqual({ status: 'success', attempts: 3 })
    expect(await attemptsOf({ throws: 'retryable' })).toMatchObject({
      ...{ status: 'failed', attempts: 3, name: 'RetryableError', code: 'TASK_THREW', message: 'rate limited' },
    })
    expect(await attemptsOf({ throws: 'a subclass' })).toMatchObject({ attempts: 3 })
    expect(await attemptsOf({ throws: 'plain' })).toMatchObject({ attempts: 1 })
    expect(await attemptsOf({ throws: 'a getter that throws' })).toMatchObject({ attempts: 1 })
  })

  it('has as many as the run or the task says, if one does', async () => {
    expect(await attemptsOf({ throws: 'retryable' }, { maxAttempts: 1 })).toMatchObject({ attempts: 1 })
    expect(await attemptsOf({ throws: 'retryable' }, { maxAttempts: 2 })).toMatchObject({ attempts: 2 })
    expect(await attemptsOf({ throws: 'retryable' }, {}, { maxAttempts: 1 })).toMatchObject({ attempts: 1 })
    expect(await attemptsOf({ throws: 'retryable' }, { maxAttempts: 1 }, { maxAttempts: 4 })).toMatchObject({
      attempts: 4,
    })
  })

  it('waits retryAfterMs instead of the backoff', async () => {
    const folder = storeFolder()
    const times = () => folder.ran().map(Number)
    const input = { throws: 'retryable', until: 2, file: folder.ledger } as const
    await attemptsOf({ ...input, retryAfterMs: 600 }, { backoffMs: 1 })
    const [first, second] = times()
    expect(second! - first!).toBeGreaterThanOrEqual(590)
    folder.forget()
    // By the backoff it would be half a minute at least.
    await attemptsOf({ ...input, retryAfterMs: 0 }, { backoffMs: 60_000, backoffMaxMs: 60_000 })
    const [third, fourth] = times()
    expect(fourth! - third!).toBeLessThan(20_000)
  })

  it('waits an hour at most, and does not take the word of what is no wait', () => {
    const asking = (retryAfterMs: unknown) => retryOf(Object.assign(new RetryableError('x'), { retryAfterMs }))
    expect(asking(1e12)).toEqual({ retryable: true, retryAfterMs: RETRY_AFTER_MAX_MS })
    for (const odd of [Number.NaN, -1, Infinity, '5', null]) expect(asking(odd)).toEqual({ retryable: true })
    for (const odd of [null, undefined, 'text', new Error('plain')]) expect(retryOf(odd)).toEqual({})
  })

  it.each([Number.NaN, -1, Infinity])('is told that %s is no wait, with what it wanted to say', async (wait) => {
    const { error } = await Runners.runTask(waitsWrong.task(wait), quick)
    expect(error).toMatchObject({ name: 'TypeError', cause: { cause: 'the reply' } })
    expect(error!.message).toBe(
      `RetryableError('rate limited'): 'retryAfterMs' must be a finite number of at least 0 milliseconds, it is ${wait}`,
    )
  })

  it('is tried again as a sub-task too', async () => {
    const { answer } = await Runners.runTask(asksForTrying.task({ throws: 'retryable', until: 3 }), quick)
    expect(answer).toEqual({ status: 'success', attempts: 3 })
  })
})

it('setup and timers can throw them too', async () => {
  expect(await Runners.runTask(readyLate.task('x'), quick)).toMatchObject({ status: 'success', answer: 3, attempts: 3 })
  const config = { ...quick, maxAttempts: 4 }
  for (const [agent, code] of [[neverReady, 'SETUP_FAILED'] as const, [throwsLater, 'UNCAUGHT_IN_TASK'] as const])
    expect(await Runners.runTask(agent.task('x'), config)).toMatchObject({ attempts: 1, error: { code } })
})

describe('retryIf', () => {
  it('decides by the error whether a failure is final, while attempts are left', async () => {
    const retryIf = vi.fn(({ message }: TaskError, { attempt }: { attempt: number }) => {
      return message === 'plain' && attempt < 2
    })
    const task = tries.task({ throws: 'plain' }, { id: 'q7' })
    const response = (await Runners.runTask([task], { ...quick, maxAttempts: 9, retryIf })).get('q7')!
    expect(response).toMatchObject({ status: 'failed', attempts: 2 })
    expect(retryIf.mock.calls.map(([error, about]) => [error.code, error.message, about])).toEqual([
      ['TASK_THREW', 'plain', { taskId: 'q7', attempt: 1 }],
      ['TASK_THREW', 'plain', { taskId: 'q7', attempt: 2 }],
    ])
  })

  it('is asked about timeouts and crashes too', async () => {
    const asked: string[] = []
    const retryIf = ({ code }: TaskError) => asked.push(code) > 2
    const tasks = [hangs.task(undefined, { timeoutMs: 50 }), exits.task('now')]
    const responses = await Runners.runTask(tasks, { ...quick, concurrency: 1, maxAttempts: 9, retryIf })
    expect([...responses.values()].map(({ status, attempts }) => [status, attempts])).toEqual([
      ['timeout', 1],
      ['crashed', 1],
    ])
    expect(asked).toEqual(['TASK_TIMEOUT', 'PROCESS_EXIT'])
  })

  it('is not asked about errors that say so themselves, nor when no attempt is left', async () => {
    const retryIf = vi.fn(() => true)
    const { attempts } = await attemptsOf({ throws: 'fatal' }, { maxAttempts: 3, retryIf })
    expect([attempts, retryIf.mock.calls.length]).toEqual([1, 0])
    const never = vi.fn(() => false)
    expect(await attemptsOf({ throws: 'retryable' }, { maxAttempts: 3, retryIf: never })).toMatchObject({ attempts: 3 })
    expect(never).not.toHaveBeenCalled()
    expect(await attemptsOf({ throws: 'plain' }, { maxAttempts: 2, retryIf })).toMatchObject({ attempts: 2 })
    expect(retryIf).toHaveBeenCalledOnce()
  })

  it('allows three attempts where nobody set maxAttempts', async () => {
    expect(await attemptsOf({ throws: 'plain' }, { retryIf: () => true })).toMatchObject({ attempts: 3 })
    expect(await attemptsOf({ throws: 'plain' }, { retryIf: () => false })).toMatchObject({ attempts: 1 })
  })

  it('that throws makes the run fail with its error, and the run can be resumed without a task lost', async () => {
    const folder = storeFolder()
    const config = { ...quick, store: folder.store, maxAttempts: 3, concurrency: 1 }
    const tasks = [
      tries.task({ throws: 'plain', until: 1 }, { id: 'fine' }),
      tries.task({ throws: 'plain', until: 2 }, { id: 'fails once' }),
      tries.task({ throws: 'plain', until: 1 }, { id: 'last' }),
    ]
    const retryIf = () => {
      throw new RangeError('no such table')
    }
    const error = await refused(
      () => Runners.runTask(tasks, { ...config, runId: 'r', retryIf }),
      'RETRY_IF_FAILED',
      "`retryIf` threw for task 'fails once', attempt 1: no such table",
    )
    expect(error.cause).toBeInstanceOf(RangeError)
    expect([...error.responses!.keys()]).toContain('fine')
    const resumed = await Runners.runTask(tasks, { ...config, resume: 'r' })
    expect([...resumed.values()].map(({ id, status, attempts }) => [id, status, attempts])).toEqual([
      ['fine', 'success', 1],
      ['fails once', 'success', 2],
      ['last', 'success', 1],
    ])
  })

  it.each([
    ['a promise', async () => true, 'a promise; it cannot be async'],
    ['a promise that is rejected', () => Promise.reject(new Error('later')), 'a promise'],
    ['nothing', () => undefined, 'undefined'],
    ['what match() returns', () => 'x'.match(/y/), 'null'],
  ])('that returns %s makes the run fail with one clear error', async (_, retryIf, words) => {
    const config = { ...quick, retryIf } as object
    const run = () => Runners.runTask(tries.task({ throws: 'plain' }, { id: 'a' }), config)
    await refused(run, 'RETRY_IF_FAILED', "must return true or false, for task 'a', attempt 1", words)
  })

  it('must be a function, and is not for syncRunTask', async () => {
    const task = tries.task({ throws: 'plain' })
    const wrong = { ...quick, retryIf: true } as object
    await refused(() => Runners.runTask(task, wrong), 'CONFIG_INVALID', '`retryIf` must be a function, it is true')
    await refused(() => Runners.syncRunTask([task], { retryIf: () => true }), 'SYNC_UNSUPPORTED', '`retryIf`')
  })
})

it('what was tried again is in the run file, and a resumed run counts it', async () => {
  const { store, file } = storeFolder()
  const config = { ...quick, store, retryIf: () => true }
  const task = tries.task({ throws: 'retryable', retryAfterMs: 3_000_000 }, { id: 'a' })
  const stop = new AbortController()
  const waiting = Runners.runTask(task, { ...config, runId: 'r', signal: stop.signal })
  const failed = () => query(file('r'), `SELECT attempt FROM attempts WHERE status = 'failed'`)
  await expect.poll(failed, { timeout: 40_000 }).toHaveLength(1)
  stop.abort()
  expect(await waiting).toMatchObject({ status: 'cancelled', attempts: 1 })
  const resumed = await Runners.runTask(task, { ...config, resume: 'r', maxAttempts: 2 })
  expect(resumed).toMatchObject({ status: 'failed', attempts: 2 })
  const [session] = query(file('r'), 'SELECT config FROM sessions')
  expect(JSON.parse(session!.config as string)).not.toHaveProperty('retryIf')
  using run = RunFile.open('r', { store })
  const stored = run.task('a')!
  expect(stored.attempts.map(({ attempt, status }) => [attempt, status])).toContainEqual([1, 'failed'])
  expect(stored.response!.error).toMatchObject({ name: 'RetryableError', message: 'rate limited' })
})
