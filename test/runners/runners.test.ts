import { execTasks, Runners, Task, TaskError } from 'manyworlds'
import { afterAll, describe, expect, test } from 'vitest'
import { asker } from '../agents/askers.ts'
import { echo, sleeper, where } from '../agents/basics.ts'
import { changer, nested, parent } from '../agents/context.ts'
import { thrower, throwsAtOnce } from '../agents/failing.ts'

afterAll(() => Runners.shutdown())
const answers = (responses: Map<string, { answer?: unknown }>) => [...responses.values()].map(({ answer }) => answer)

describe('runTask', () => {
  test('one task is one response, with all that is known of it', async () => {
    const response = await Runners.runTask({ id: 'only', input: 'hello', agent: echo })
    expect(response).toMatchObject({
      id: 'only',
      agentName: 'echo',
      success: true,
      status: 'success',
      answer: 'hello',
      trajectory: [],
      usage: {},
      attempts: 1,
      logs: [],
      worker: { id: expect.any(String), host: expect.any(String), pid: expect.any(Number) },
      timing: { queuedMs: expect.any(Number), runMs: expect.any(Number) },
    })
    expect(response.worker?.pid).not.toBe(process.pid)
    expect(response.timing.runMs).toBeGreaterThanOrEqual(0)
  })

  test('many are answered in the order in which they were given, whichever is done first', async () => {
    const tasks = [60, 5, 30, 1].map((ms) => sleeper.task(ms, { id: `after ${ms}` }))
    const responses = await Runners.runTask(tasks, { workerNum: 2 })
    expect([...responses.keys()]).toEqual(['after 60', 'after 5', 'after 30', 'after 1'])
    expect(answers(responses)).toEqual([60, 5, 30, 1])
  })

  test('tasks without an id are numbered by their place', async () => {
    const responses = await Runners.runTask([echo.task('a'), echo.task('b', { id: 'named' }), echo.task('c')])
    expect([...responses.keys()]).toEqual(['#1', 'named', '#3'])
  })

  test('literals, agent.task() and new Task() are the same', async () => {
    const tasks = [{ input: 1, agent: echo }, echo.task(2), new Task({ input: 3, agent: echo, id: 'three' })]
    expect(answers(await Runners.runTask(tasks))).toEqual([1, 2, 3])
    expect(answers(await execTasks(tasks))).toEqual([1, 2, 3])
  })

  test('tasks come from any iterable, also an asynchronous one', async () => {
    async function* later() {
      for (let input = 0; input < 50; input++) yield echo.task(input)
    }
    const expected = Array.from({ length: 50 }, (_, index) => index)
    expect(answers(await Runners.runTask(later()))).toEqual(expected)
    expect(answers(await Runners.runTask(new Set(expected.map((input) => echo.task(input)))))).toEqual(expected)
  })
})

describe('what goes in comes out', () => {
  const shared = { once: 1 }
  const values: [what: string, value: unknown][] = [
    ['zero', 0],
    ['minus zero', -0],
    ['NaN', Number.NaN],
    ['nothing', undefined],
    ['null', null],
    ['an empty string', ''],
    ['false', false],
    ['a big integer', 2n ** 70n],
    ['a Map', new Map<unknown, unknown>([['a', new Map([[{ key: 1 }, new Set([1, 'x'])]])]])],
    ['a Date', new Date(1234567890123)],
    ['bytes', new Uint8Array([0, 1, 255])],
    ['bytes inside', { image: new Uint8Array([1, 2]), size: new Float64Array([0.5]) }],
    ['a regular expression', /a(b+)/giu],
    ['an error', new RangeError('as data')],
    ['undefined inside', { a: undefined, b: [undefined, null] }],
    ['odd keys', { __proto_: 1, constructor: 2, 'a b': 3, '': 4, toString: 'x' }],
    ['a key called __proto__', JSON.parse('{"__proto__": {"polluted": true}}')],
    ['a hole', Object.assign(new Array(3), { 0: 1, 2: 3 })],
    ['one object in two places', { left: shared, right: shared }],
    ['text beyond ASCII', 'ünï → 😀 \u0000 \ud800'],
    ['a megabyte of text', 'xy'.repeat(500_000)],
    ['many small things', Array.from({ length: 5000 }, (_, index) => ({ index, text: `item ${index}` }))],
  ]
  test.each(values)('%s', async (_what, value) => {
    const response = await Runners.runTask(echo.task(value))
    expect(response.success).toBe(true)
    expect(response.answer).toStrictEqual(value)
    expect('answer' in response).toBe(true)
  })

  test('two tasks that were given one object do not share it', async () => {
    const input = { list: [] as number[] }
    const responses = await Runners.runTask([changer.task(input), changer.task(input)], { workerNum: 1 })
    expect(answers(responses)).toEqual([[0], [0]])
    expect(input).toEqual({ list: [] })
  })

  test('a change after the task was yielded is not seen', async () => {
    const input = { list: [] as number[] }
    function* reusing() {
      for (let turn = 0; turn < 3; turn++) {
        input.list = [turn]
        yield echo.task(input)
        input.list.push(99)
      }
    }
    const expected = [{ list: [0] }, { list: [1] }, { list: [2] }]
    expect(answers(await Runners.runTask(reusing()))).toEqual(expected)
    async function* later() {
      yield* reusing()
    }
    expect(answers(await Runners.runTask(later()))).toEqual(expected)
  })
})

describe('whatever a task throws is its response, and nobody else’s', () => {
  const fail = async (what: Parameters<typeof thrower.task>[0]) => {
    const responses = await Runners.runTask([echo.task(1), thrower.task(what, { id: 'bad' }), echo.task(2)])
    expect(answers(responses)).toEqual([1, undefined, 2])
    const { success, status, error, attempts } = responses.get('bad')!
    expect({ success, status, attempts }).toEqual({ success: false, status: 'failed', attempts: 1 })
    expect(error).toBeInstanceOf(TaskError)
    expect(error?.code).toBe('TASK_THREW')
    return error!
  }

  test('null, undefined, text, an object: the value is the cause', async () => {
    expect(await fail('null')).toMatchObject({ message: 'null was thrown', cause: null })
    expect((await fail('undefined')).message).toBe('undefined was thrown')
    expect(await fail('string')).toMatchObject({ message: "'just text' was thrown", cause: 'just text' })
    expect((await fail('object')).cause).toEqual({ status: 429, retry: [1, 2] })
    expect((await fail('function')).message).toContain('was thrown')
  })

  test('an error keeps its name, message, stack and cause', async () => {
    const outer = await fail('cause')
    expect(outer).toMatchObject({ name: 'Error', message: 'the outer' })
    expect(outer.stack).toMatch(/failing\.ts:\d+/)
    expect((outer.cause as Error).cause).toMatchObject({ name: 'TypeError', message: 'the inner' })
    const quota = await fail('subclass')
    expect(quota).toMatchObject({ name: 'QuotaError', message: 'no tokens left' })
    expect(quota.stack).toMatch(/failing\.ts:\d+/)
    expect(await fail('sync-like')).toMatchObject({ message: 'with extras' })
  })

  test('also when it throws before it returns a promise', async () => {
    const { error } = await Runners.runTask(throwsAtOnce.task('x'))
    expect(error).toMatchObject({ code: 'TASK_THREW', message: 'at once: x' })
  })
})

describe('streamTask', () => {
  test('yields each as it is done', async () => {
    const order = ['second', 'third', 'first']
    const doors = new Map(order.map((id) => [id, Promise.withResolvers<string>()]))
    const open = (id: string | undefined) => id !== undefined && doors.get(id)!.resolve(id)
    const started = new Set<string>()
    const door = (id: string) => {
      // Each is done after the one before it was seen, and the first one when all run.
      if (started.add(id).size === 3) open(order[0])
      return doors.get(id)!.promise
    }
    const seen: unknown[] = []
    const tasks = ['first', 'second', 'third'].map((question) =>
      asker.task({ service: 'door', question }, { id: question }),
    )
    for await (const { id, answer } of Runners.streamTask(tasks, { workerNum: 1, services: { door } })) {
      seen.push(answer)
      open(order[order.indexOf(id) + 1])
    }
    expect(seen).toEqual(order)
  })

  test('starts nothing before it is asked, and can be asked again after the end', async () => {
    let read = 0
    function* counted() {
      read++
      yield echo.task('x')
    }
    const stream = Runners.streamTask(counted())
    await new Promise((resolve) => setTimeout(resolve, 20))
    expect(read).toBe(0)
    expect((await stream.next()).value).toMatchObject({ answer: 'x' })
    expect(await stream.next()).toEqual({ done: true, value: undefined })
    expect(await stream.next()).toEqual({ done: true, value: undefined })
  })

  test('leaving while the next response is waited for: there is none, and none comes later', async () => {
    const stream = Runners.streamTask([sleeper.task(60_000), sleeper.task(60_000)])
    const next = stream.next()
    await stream.return?.()
    expect(await next).toEqual({ done: true, value: undefined })
    expect(await stream.next()).toEqual({ done: true, value: undefined })
  })

  test('leaving the loop cancels the rest, ends the source, and leaves the workers to the next', async () => {
    let closed = false
    async function* endless() {
      try {
        for (let n = 0; ; n++) yield n === 0 ? echo.task('first') : sleeper.task(60_000)
      } finally {
        closed = true
      }
    }
    const config = { workerNum: 1, concurrency: 4 }
    for await (const response of Runners.streamTask(endless(), config)) {
      expect(response.answer).toBe('first')
      break
    }
    expect(await Runners.runTask(echo.task('next'), config)).toMatchObject({ answer: 'next' })
    await expect.poll(() => closed).toBe(true)
  })

  test('several readers get each response once', async () => {
    const stream = Runners.streamTask([1, 2, 3, 4].map((input) => echo.task(input)))
    const results = await Promise.all([stream.next(), stream.next(), stream.next(), stream.next(), stream.next()])
    expect(
      results
        .map(({ value }) => value?.answer)
        .filter((value) => value !== undefined)
        .sort(),
    ).toEqual([1, 2, 3, 4])
    expect(results.map(({ done }) => done)).toEqual([false, false, false, false, true])
  })
})

describe('inside a task', () => {
  test.each(['context', 'Runners'] as const)('sub-tasks by %s, three deep, on one worker with one slot', async (by) => {
    const config = { workerNum: 1, concurrency: 1 }
    const { answer, error } = await Runners.runTask(nested.task({ depth: 3, by }), config)
    expect(answer, error?.message).toBe('(((leaf leaf) (leaf leaf)) ((leaf leaf) (leaf leaf)))')
  })

  test('a sub-task that fails is a value, and its id tells whose it is', async () => {
    const { answer } = await Runners.runTask(parent.task('fails', { id: 'p' }))
    expect(answer).toEqual(['p/1.1', 'failed', 'TASK_THREW', 'below zero'])
  })

  test.each([
    ['duplicate', "two sub-tasks with the id 'p/x'"],
    ['config', '`workerNum` cannot be set inside a task'],
    ['stream', 'ctx.runTask'],
    ['sync', 'ctx.runTask'],
    ['bad', '{ input, agent }'],
  ] as const)('%s is refused with what to do instead', async (what, words) => {
    const { error } = await Runners.runTask(parent.task(what, { id: 'p' }))
    expect(error?.message).toContain(words)
  })
})

test('workers are kept for the next call, also of a call that blocks', async () => {
  const config = { workerNum: 1, concurrency: 3 }
  const first = await Runners.runTask(where.task(0), config)
  expect((await Runners.runTask(where.task(0), config)).answer).toBe(first.answer)
  const blocking = Runners.syncRunTask([where.task(0)], config)
  expect(blocking.get('#1')?.answer).toEqual(expect.any(Number))
  expect(Runners.syncRunTask([where.task(0)], config).get('#1')?.answer).toBe(blocking.get('#1')?.answer)
})

test('a call that blocks answers like one that does not', () => {
  const date = new Date(5)
  const responses = Runners.syncRunTask([echo.task(new Map([['date', date]])), thrower.task('subclass'), echo.task(-0)])
  expect(responses.get('#1')?.answer).toEqual(new Map([['date', date]]))
  expect(responses.get('#2')).toMatchObject({ status: 'failed', error: { name: 'QuotaError', code: 'TASK_THREW' } })
  expect(responses.get('#2')?.error).toBeInstanceOf(TaskError)
  expect(responses.get('#3')?.answer).toBe(-0)
})
