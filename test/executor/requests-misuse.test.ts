import { setTimeout as sleep } from 'node:timers/promises'
import { Runners, type ServiceContext } from 'manyworlds'
import { afterAll, describe, expect, it, vi } from 'vitest'
import { asksTooLate, asksTooMuch, forgetful, manyAtOnce, tellsLater, told, wronglyAsking } from '../agents/askers.ts'
import { where } from '../agents/basics.ts'

/** Services and tasks that do what they should not: each gets one clear error, and nobody else suffers. */

afterAll(() => Runners.shutdown())

const base = { store: false, workerNum: 1, concurrency: 8 } as const

it('a question with millions of keys is refused before it blocks the driver', async () => {
  const services = { any: async () => 1 }
  const response = await Runners.runTask(asksTooMuch.task(1_100_000), { ...base, services })
  expect(response.answer).toEqual({
    code: 'VALUE_NOT_SERIALIZABLE',
    message: expect.stringMatching(/it has 1100000 keys and entries, and at most 1000000 can be sent/),
  })
})

describe('whatever a service throws', () => {
  const throws = (make: () => unknown) => async () => {
    throw make()
  }
  const throwsNow = () => {
    throw Object.create(null)
  }
  const proxy = () =>
    new Proxy(
      {},
      {
        get: () => {
          throw new Error('no')
        },
        has: () => {
          throw new Error('no')
        },
      },
    )
  const badMessage = () =>
    Object.defineProperty(new Error('x'), 'message', {
      get: () => {
        throw new Error('no')
      },
    })
  it.each([
    ['null', throws(() => null), 'null was thrown'],
    ['nothing', throws(() => undefined), 'undefined was thrown'],
    ['an object without a prototype', throws(() => Object.create(null)), 'was thrown'],
    ['the same, at once', throwsNow, 'was thrown'],
    ['a symbol', throws(() => Symbol('s')), 'Symbol(s) was thrown'],
    ['a message that throws', throws(badMessage), 'was thrown'],
    ['a proxy that throws', throws(proxy), 'was thrown'],
    ['megabytes', throws(() => new Error('x'.repeat(5_000_000))), 'more characters'],
    ['an error with a code of its own', throws(() => Object.assign(new Error('quota'), { code: 'E_QUOTA' })), 'quota'],
    ['from a thenable', () => Object.fromEntries([['then', throwsNow]]), 'was thrown'],
  ])('is what the task is told: %s', async (_name, thrower, words) => {
    const response = await Runners.runTask(told.task({ service: 'throws' }), { ...base, services: { throws: thrower } })
    expect(response.answer).toMatchObject({ code: 'SERVICE_FAILED' })
    const { message } = response.answer as { message: string }
    expect(message).toMatch(/^service 'throws' failed: /)
    expect(message).toContain(words)
    expect(message.length).toBeLessThan(100_000)
  })
})

it('what cannot be asked is refused, with a code and what may be asked instead', async () => {
  const services = { echo: (question: unknown) => question }
  const response = await Runners.runTask(wronglyAsking.task(null), { ...base, services })
  const answers = response.answer!
  const words: Record<string, string> = {
    'an unknown option': 'did you mean "limitMs"?',
    'options null': 'options',
    'a controller as signal': 'controller.signal',
    'a limit as text': 'limitMs',
    'a limit of 0': 'limitMs',
    'a limit of NaN': 'NaN',
    'another slot': "'keep' or 'give', not free",
    'another clock': "'stands' or 'runs', not stop",
    'no name': '1 to 256 characters',
    'a number as name': '1 to 256 characters',
    'a long name': '1 to 256 characters',
    'a name of our own': "'manyworlds.'",
    'a function': 'it is a function',
    'once without a function': 'third argument',
    'once without a name': '1 to 256 characters',
    'once with a function as result': 'it is a function',
  }
  expect(Object.keys(answers)).toEqual(Object.keys(words))
  for (const [name, word] of Object.entries(words)) {
    expect(answers[name], name).toMatchObject({
      code: word === 'it is a function' ? 'VALUE_NOT_SERIALIZABLE' : 'REQUEST_INVALID',
      message: expect.stringContaining(word),
    })
    expect(answers[name], name).not.toHaveProperty('threw')
  }
})

it('what a task asks when it has ended is refused', async () => {
  const services = { echo: (question: unknown) => question }
  const responses = await Runners.runTask([asksTooLate.task(null), tellsLater.task(null)], { ...base, services })
  const [, later] = [...responses.values()]
  const refusal = { code: 'REQUEST_INVALID', message: expect.stringContaining('after it had ended') }
  expect(later!.answer).toEqual([refusal, refusal, refusal, refusal])
})

it('requests that nobody waits for cost a task that is given up nothing, nor its worker', async () => {
  const stderr = vi.spyOn(process.stderr, 'write').mockReturnValue(true)
  const services = { never: () => new Promise(() => {}) }
  const before = await Runners.runTask(where.task(null), base)
  const response = await Runners.runTask(forgetful.task(null, { timeoutMs: 100 }), { ...base, services })
  expect(response.error!.code).toBe('TASK_TIMEOUT')
  await sleep(800)
  const after = await Runners.runTask(where.task(null), base)
  expect(after.answer).toBe(before.answer)
  expect(stderr.mock.calls.flat().join('')).toBe('')
  stderr.mockRestore()
})

it('what a task that is over had asked for is not served in its turn', async () => {
  const asked: number[] = []
  const signals: AbortSignal[] = []
  const one = {
    atOnce: 1,
    answer: (i: number, { signal }: ServiceContext) => {
      asked.push(i)
      signals.push(signal)
      return new Promise(() => {})
    },
  }
  const abort = new AbortController()
  const run = Runners.runTask(manyAtOnce.task({ service: 'one', count: 50 }), {
    ...base,
    services: { one },
    signal: abort.signal,
  })
  await expect.poll(() => asked).toEqual([0])
  abort.abort()
  expect((await run).status).toBe('cancelled')
  await expect.poll(() => signals[0]!.aborted).toBe(true)
  await sleep(100)
  expect(asked).toEqual([0])
})

it('thousands that wait for their turn may all fail at once', async () => {
  let open = () => {}
  const gate = new Promise<void>((resolve) => {
    open = resolve
  })
  let asked = 0
  const services = {
    fails: {
      atOnce: 1,
      answer: () => {
        if (asked++ === 0) return gate
        throw new Error('no')
      },
    },
  }
  const tasks = Array.from({ length: 400 }, () => told.task({ service: 'fails' }))
  const run = Runners.runTask(tasks, { ...base, concurrency: 400, services })
  await expect.poll(() => asked).toBe(1)
  await sleep(500)
  open()
  const responses = [...(await run).values()]
  expect(responses.filter(({ answer }) => (answer as { code?: string }).code === 'SERVICE_FAILED')).toHaveLength(399)
})
