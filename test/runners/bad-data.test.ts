import { DistributedExecutor, Runners, type TaskLike } from 'manyworlds'
import { afterAll, describe, expect, test } from 'vitest'
import { badParams, unsendable } from '../agents/bad.ts'
import { echo, sleeper } from '../agents/basics.ts'
import { CountingRuntime, refused } from '../support/refused.ts'

// What users give wrongly is, on purpose, what the compiler would not let them.
// biome-ignore lint/suspicious/noExplicitAny: it is the point
type Given = any
const counted = { cls: CountingRuntime }

afterAll(() => Runners.shutdown())

describe('an input that cannot be sent is refused before anything starts, with the path to what is wrong', () => {
  class Client {
    retry = () => 1
  }
  const wrong: [what: string, input: unknown, ...words: string[]][] = [
    ['a function', () => 1, 'it is a function'],
    ['a function deep inside', { steps: [{ ok: 1 }, { callback: () => 1 }] }, '`steps.1.callback` is a function'],
    ['a symbol', { kind: Symbol('x') }, '`kind` is a symbol'],
    ['a promise', { page: fetchNothing() }, '`page` is a Promise', 'await'],
    ['a WeakMap', { cache: new WeakMap() }, '`cache` is a WeakMap'],
    ['a function in a Map', new Map([['f', () => 1]]), 'f', 'is a function'],
    ['a Proxy in a Map', new Map([['p', new Proxy({}, {})]]), 'could not be cloned'],
    ['a generator', { next: (function* () {})() }, 'could not be cloned'],
    ['a method that is a property', new Client(), '`retry` is a function'],
    ['a stream', process.stdin, 'is a function'],
    [
      'a getter that throws',
      {
        get trap() {
          throw new Error('sprung')
        },
      },
      'sprung',
    ],
  ]
  test.each(wrong)('%s', async (_what, input, ...words) => {
    const tasks = [echo.task(1), echo.task(input, { id: 'bad' })]
    const all = ["task 'bad'", '`input`', ...words, 'plain data']
    await refused(() => Runners.runTask(tasks, counted), 'INPUT_NOT_SERIALIZABLE', ...all)
  })

  test('also in metadata and groundTruth', async () => {
    const callback = () => 1
    const withMetadata = echo.task(1, { metadata: { callback } })
    await refused(() => Runners.runTask(withMetadata, counted), 'INPUT_NOT_SERIALIZABLE', '`metadata.callback`')
    const withTruth = echo.task(1, { groundTruth: callback })
    await refused(() => Runners.runTask(withTruth, counted), 'INPUT_NOT_SERIALIZABLE', '`groundTruth`')
  })

  test('cycles are fine, and a class instance arrives as the data that it holds', async () => {
    class Point {
      x = 1
      get double() {
        return this.x * 2
      }
    }
    const cycle: { self?: unknown; point: Point } = { point: new Point() }
    cycle.self = cycle
    const response = await Runners.runTask(echo.task(cycle))
    const answer = response.answer as typeof cycle
    expect(answer.self).toBe(answer)
    expect(answer.point).toEqual({ x: 1 })
    expect(Object.getPrototypeOf(answer.point)).toBe(Object.prototype)
  })
})

describe('an answer that cannot be sent is a response, and its neighbours have theirs', () => {
  test.each([
    ['function', '`deep.0.callback` is a function'],
    ['promise', '`later` is a Promise'],
    ['symbol', 'symbol'],
    ['weak', 'WeakMap'],
    ['getter', 'sprung'],
    // The driver would be busy with it for a second, and all other tasks would wait.
    ['keys', 'it has 1000001 keys and entries, and at most 1000000 can be sent'],
  ] as const)('%s', async (kind, words) => {
    const task = unsendable.task(kind, { id: 'bad', maxAttempts: 3 })
    const responses = await Runners.runTask([echo.task(1), task, echo.task(2)], { concurrency: 1, workerNum: 1 })
    const { status, error, attempts } = responses.get('bad')!
    expect([status, error?.code]).toEqual(['failed', 'ANSWER_NOT_SERIALIZABLE'])
    expect(error?.message).toContain(words)
    expect(error?.message).toContain('plain data')
    expect(attempts, 'another attempt would only repeat it').toBe(1)
    expect([...responses.values()].map((response) => response.success)).toEqual([true, false, true])
  })
})

test('params that cannot be sent are refused before anything starts, also those of a later task', async () => {
  const tasks: TaskLike[] = [echo.task(1), echo.task(2), echo.task(3), badParams.task(4)]
  const config = { ...counted, workerNum: 1 }
  await refused(() => Runners.runTask(tasks, config), 'AGENT_INVALID', "'bad-params'", '`callback`', '`setup`')
})

describe('a source that fails midway loses nothing that was read before', () => {
  function* failing() {
    yield echo.task(1, { id: 'one' })
    yield echo.task(2, { id: 'two' })
    throw new RangeError('no more rows')
  }
  async function* failingLater() {
    yield* failing()
  }
  function* withDuplicate() {
    yield echo.task(1, { id: 'one' })
    yield echo.task(2, { id: 'two' })
    yield echo.task(3, { id: 'one' })
  }
  function* withNull() {
    yield echo.task(1, { id: 'one' })
    yield echo.task(2, { id: 'two' })
    yield null as never
  }
  async function* withFunction() {
    yield echo.task(1, { id: 'one' })
    yield echo.task(2, { id: 'two' })
    yield echo.task(() => 1, { id: 'bad' })
  }
  const cases = [
    ['a generator throws', failing, 'SOURCE_FAILED', 'no more rows'],
    ['an async generator throws', failingLater, 'SOURCE_FAILED', 'no more rows'],
    ['an id comes a second time', withDuplicate, 'TASK_DUPLICATE_ID', "'one'"],
    ['null is yielded', withNull, 'TASK_INVALID', 'task 3'],
    ['an input cannot be sent', withFunction, 'INPUT_NOT_SERIALIZABLE', "task 'bad'"],
  ] as const
  test.each(cases)('runTask, when %s: on the error', async (_what, source, code, words) => {
    const error = await refused(() => Runners.runTask(source() as Iterable<TaskLike>), code, words)
    expect([...error.responses!.keys()]).toEqual(['one', 'two'])
    expect([...error.responses!.values()]).toMatchObject([{ answer: 1 }, { answer: 2 }])
    if (code !== 'SOURCE_FAILED') return
    expect(error.cause).toBeInstanceOf(RangeError)
    expect(error.message).toMatch(/no more rows \(at \S+\/bad-data\.test\.ts:\d+:\d+\)$/)
  })
  test.each(cases)('streamTask, when %s: yielded first', async (_what, source, code, words) => {
    const seen: string[] = []
    const consume = async () => {
      for await (const response of Runners.streamTask(source() as Iterable<TaskLike>)) seen.push(response.id)
    }
    await refused(consume, code, words)
    expect(seen.sort()).toEqual(['one', 'two'])
  })
})

test('labels that no worker has are a failed response', async () => {
  const responses = await Runners.runTask([echo.task(1), echo.task(2, { id: 'picky', requires: ['gpu', 'tpu'] })])
  const { status, error } = responses.get('picky')!
  expect([status, error?.code]).toEqual(['failed', 'REQUIRES_UNMET'])
  expect(error?.message).toContain('gpu, tpu')
})

test('an empty array is an empty map, and a signal that was aborted before cancels all: neither starts a worker', async () => {
  const before = CountingRuntime.starts
  expect(await Runners.runTask([], counted)).toEqual(new Map())
  const signal = AbortSignal.abort()
  const responses = await Runners.runTask([echo.task(1), echo.task(2)], { ...counted, signal })
  expect([...responses.values()].map(({ status }) => status)).toEqual(['cancelled', 'cancelled'])
  expect([...responses.values()].map(({ error }) => error?.code)).toEqual(['TASK_CANCELLED', 'TASK_CANCELLED'])
  const endless = function* () {
    for (;;) yield echo.task(1)
  }
  for await (const response of Runners.streamTask(endless(), { ...counted, signal }))
    expect(response.status).toBe('cancelled')
  expect(CountingRuntime.starts).toBe(before)
})

describe('DistributedExecutor', () => {
  test('a configuration with a mistake', async () => {
    const make = (config: Given) => () => new DistributedExecutor(config)
    await refused(make({ worker_num: 2 }), 'CONFIG_INVALID', "did you mean 'workerNum'")
    await refused(make({ maxQueueSize: 0 }), 'CONFIG_INVALID', '`maxQueueSize`', 'at least 1', 'it is 0')
  })

  test('one task too many, an id twice, and a bad task are refused; the others are answered', async () => {
    await using executor = new DistributedExecutor({ workerNum: 1, maxQueueSize: 2 })
    executor.submitTask(sleeper.task(50, { id: 'a' }))
    await refused(() => executor.submitTask(sleeper.task(1, { id: 'a' })), 'TASK_DUPLICATE_ID', "'a'")
    await refused(() => executor.submitTask(null as Given), 'TASK_INVALID', '{ input, agent }')
    await refused(() => executor.submitTask(echo.task(1, { dependsOn: ['a'] })), 'DEPENDENCY_NEEDS_ARRAY', 'array')
    executor.submitTask(sleeper.task(60, { id: 'b' }))
    await refused(() => executor.submitTask(echo.task(1)), 'QUEUE_FULL', 'maxQueueSize is 2', 'collectResults()')
    const seen = new Map()
    while (executor.pending > 0 || seen.size < 2)
      for (const [id, response] of await executor.collectResults()) seen.set(id, response.answer)
    expect(seen).toEqual(
      new Map([
        ['a', 50],
        ['b', 60],
      ]),
    )
    expect(executor.submitTask(echo.task('room again'))).toBe('#3')
  })

  test('after shutdown nothing is taken, and what is done can be collected', async () => {
    const executor = new DistributedExecutor({ workerNum: 1 })
    executor.submitTask(echo.task(1, { id: 'a' }))
    await executor.shutdown()
    await refused(() => executor.submitTask(echo.task(1)), 'EXECUTOR_CLOSED', 'shut down', 'make a new one')
    expect([...(await executor.collectResults()).keys()]).toEqual(['a'])
    await executor.shutdown()
  })
})

async function fetchNothing() {}
