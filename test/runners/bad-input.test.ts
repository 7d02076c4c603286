import { type RunConfig, Runners } from 'manyworlds'
import { afterAll, describe, expect, test } from 'vitest'
import { echo } from '../agents/basics.ts'
import { CountingRuntime, refused } from '../support/refused.ts'

// What users give wrongly is, on purpose, what the compiler would not let them.
// biome-ignore lint/suspicious/noExplicitAny: it is the point
type Given = any
const run = (tasks: Given, config: Given = {}) => Runners.runTask(tasks, { cls: CountingRuntime, ...config })

afterAll(() => Runners.shutdown())

describe('a run configuration with a mistake is refused before anything starts', () => {
  const wrong: [key: keyof RunConfig, value: unknown, ...words: string[]][] = [
    ['engineName', 'rai', "'local', 'nodes', 'ray', 'spark'", "it is 'rai'"],
    ['engineName', 5, 'must be one of', 'it is 5'],
    ['workerNum', 0, 'at least 1', 'it is 0'],
    ['workerNum', -2, 'at least 1', 'it is -2'],
    ['workerNum', 1.5, 'whole number', 'it is 1.5'],
    ['workerNum', '4', 'number', "it is '4'"],
    ['workerNum', 1e9, 'at most 100000'],
    ['workerNum', null, 'number', 'it is null'],
    ['concurrency', 0, 'at least 1'],
    ['concurrency', Number.NaN, 'number', 'it is NaN'],
    ['inLocal', 'yes', 'true or false', "it is 'yes'"],
    ['sequenceDependent', 1, 'true or false', 'it is 1'],
    ['timeoutMs', 0, 'more than 0 milliseconds'],
    ['timeoutMs', Number.POSITIVE_INFINITY, 'finite number', 'it is Infinity'],
    ['timeoutMs', 2 ** 31, 'at most 2147483647 milliseconds'],
    ['maxAttempts', 0, 'at least 1'],
    ['maxAttempts', 2.5, 'whole number'],
    ['backoffMs', -1, 'at least 0 milliseconds'],
    ['backoffMaxMs', 'long', 'number', "it is 'long'"],
    ['deadlineMs', 0, 'more than 0 milliseconds'],
    ['signal', new AbortController(), 'must be an AbortSignal', 'it is an object'],
    ['seed', 0.5, 'whole number'],
    ['runId', '', 'must not be empty'],
    ['runId', 'x'.repeat(129), 'at most 128 characters'],
    ['showLogs', 'no', 'true or false'],
    ['recycleAfterTasks', 0, 'at least 1'],
    ['recycleAboveMb', -1, 'more than 0'],
    ['env', ['A=1'], 'object of strings', 'it is an array'],
    ['env', { DEPTH: 5 }, 'env.DEPTH', 'string', 'it is 5'],
    ['keepWarmMs', -1, 'at least 0 milliseconds'],
  ]
  test.each(wrong)('%s: %j', async (key, value, ...words) => {
    await refused(() => run([echo.task(1)], { [key]: value }), 'CONFIG_INVALID', `\`${key}`, ...words)
  })

  test('a cls that is no engine', async () => {
    const withCls = (cls: unknown) => () => Runners.runTask([echo.task(1)], { cls } as Given)
    await refused(withCls(5), 'CONFIG_INVALID', '`cls`', 'RuntimeEngine', 'it is 5')
    await refused(withCls({}), 'ENGINE_INVALID', '`cls`', 'apiVersion must be 1')
    await refused(withCls({ apiVersion: 2, start() {}, stop() {} }), 'ENGINE_INVALID', 'apiVersion must be 1, it is 2')
    await refused(withCls({ apiVersion: 1, start() {} }), 'ENGINE_INVALID', 'no stop()')
    await refused(withCls(class {}), 'ENGINE_INVALID', '`cls`')
    const broken = () => {
      throw new Error('no licence')
    }
    await refused(withCls(broken), 'ENGINE_INVALID', '`cls`', 'no licence')
  })

  test('AWorld’s spelling of a key is recognised, and the right one named', async () => {
    for (const [given, meant] of [
      ['worker_num', 'workerNum'],
      ['engine_name', 'engineName'],
      ['sequence_dependent', 'sequenceDependent'],
      ['timeoutMS', 'timeoutMs'],
    ])
      await refused(
        () => run([], { [given!]: 1 }),
        'CONFIG_INVALID',
        `unknown key '${given}'`,
        `did you mean '${meant}'`,
      )
  })

  test.each([
    ['workers', 'workerNum'],
    ['parallelism', 'workerNum'],
    ['maxWorkers', 'workerNum'],
    ['concurrent', 'concurrency'],
    ['timeout', 'timeoutMs'],
    ['retries', 'maxAttempts'],
    ['max_retries', 'maxAttempts'],
    ['budget', 'maxCostUsd'],
    ['backend', 'engine'],
    ['abortSignal', 'signal'],
  ])('the word of another tool is recognised: %s is %s', async (given, meant) => {
    await refused(() => run([], { [given]: 1 }), 'CONFIG_INVALID', `unknown key '${given}', did you mean '${meant}'?`)
  })

  test('inLocal with the local engine', async () => {
    const config = { inLocal: true, workerNum: 1 }
    await refused(
      () => Runners.runTask([echo.task(1)], config),
      'CONFIG_INVALID',
      '`inLocal: true`',
      'set `engine` to ray() or spark()',
    )
  })

  test('an unknown key is refused with the list of those that exist', async () => {
    const error = await refused(() => run([], { colour: 3 }), 'CONFIG_INVALID', "unknown key 'colour'", 'maxAttempts')
    expect(error.message).not.toContain('did you mean')
  })

  test('every mistake is named at once', async () => {
    await refused(() => run([], { workerNum: 0, seed: 'x' }), 'CONFIG_INVALID', '`workerNum`', '`seed`')
  })

  test.each([
    [null, 'null'],
    [4, '4'],
    [[{ workerNum: 4 }], 'an array'],
  ])('%j as the configuration', async (given, word) => {
    await refused(() => Runners.runTask([echo.task(1)], given as Given), 'CONFIG_INVALID', 'must be an object', word)
  })
})

describe('what is no task is refused with its place', () => {
  const task = echo.task(1)
  const wrong: [what: string, tasks: unknown, ...words: string[]][] = [
    ['null', null, 'it is null'],
    ['undefined', undefined, 'it is undefined'],
    ['a number', 5, 'it is number'],
    ['a string', 'task', 'it is string'],
    ['an agent', echo, 'task 1', 'is an agent', 'agent.task(input)'],
    ['a promise of tasks', Promise.resolve([task]), 'is a Promise', 'await'],
    ['null in an array', [task, null], 'task 2', 'is null', '{ input, agent }'],
    ['a hole in an array', Object.assign(new Array(2), { 0: task }), 'task 2', 'is undefined'],
    ['a number in an array', [5], 'task 1', 'is 5'],
    ['an agent in an array', [task, echo], 'task 2', 'is an agent', 'agent.task(input)'],
    ['an array in an array', [[task]], 'task 1', 'is an array', 'flat'],
    ['no agent', [{ input: 1 }], 'task 1', 'no `agent`', 'defineAgent'],
    ['a misspelled agent', [{ id: 'a', input: 1, agnet: echo }], "task 'a'", "'agnet'", 'did you mean "agent"?'],
    [
      'a plain object as agent',
      [{ id: 'a', input: 1, agent: { name: 'x' } }],
      "task 'a'",
      'defineAgent',
      '{"name":"x"}',
    ],
    ['a function as agent', [{ input: 1, agent: async () => 1 }], '`agent`', 'defineAgent', 'a function'],
    [
      'an unknown key',
      [{ id: 'a', input: 1, agent: echo, timeout: 5 }],
      "task 'a'",
      "unknown key 'timeout'",
      'did you mean "timeoutMs"?',
    ],
    ['a number as id', [echo.task(1, { id: 7 as Given })], '`id`', 'non-empty string', 'it is 7'],
    ['null as id', [echo.task(1, { id: null as Given })], '`id`', 'it is null'],
    ['an empty id', [echo.task(1, { id: '' })], '`id`', 'non-empty'],
    ['a very long id', [echo.task(1, { id: 'x'.repeat(513) })], '`id`', '512'],
    ["an id that begins with '#'", [echo.task(1, { id: '#1' })], "'#1'", 'reserved for tasks without an id'],
    ['timeoutMs 0', [echo.task(1, { timeoutMs: 0 })], '`timeoutMs`', 'milliseconds', 'it is 0'],
    ['timeoutMs below 0', [echo.task(1, { timeoutMs: -5 })], '`timeoutMs`', 'it is -5'],
    ['timeoutMs NaN', [echo.task(1, { timeoutMs: Number.NaN })], '`timeoutMs`', 'it is NaN'],
    ['timeoutMs Infinity', [echo.task(1, { timeoutMs: Number.POSITIVE_INFINITY })], '`timeoutMs`', 'it is Infinity'],
    ['timeoutMs as a string', [echo.task(1, { timeoutMs: '5' as Given })], '`timeoutMs`', "it is '5'"],
    ['maxAttempts 0', [echo.task(1, { maxAttempts: 0 })], '`maxAttempts`', 'at least 1', 'it is 0'],
    ['maxAttempts 1.5', [echo.task(1, { maxAttempts: 1.5 })], '`maxAttempts`', 'whole number', 'it is 1.5'],
    ['rerun', [echo.task(1, { rerun: 'x' as Given })], '`rerun`', "'auto' or 'never'", "it is 'x'"],
    ['dependsOn as a string', [echo.task(1, { dependsOn: 'a' as Given })], '`dependsOn`', 'array of strings', "'a'"],
    ['dependsOn of numbers', [echo.task(1, { dependsOn: [1] as Given })], '`dependsOn`', 'array of strings', '[1]'],
    ['requires', [echo.task(1, { requires: 'gpu' as Given })], '`requires`', 'array of strings'],
    ['tools', [echo.task(1, { tools: [{}] as Given })], '`tools`', 'array of strings'],
    ['groupId', [echo.task(1, { groupId: 5 as Given })], '`groupId`', 'string', 'it is 5'],
    ['metadata', [echo.task(1, { metadata: 'x' as Given })], '`metadata`', 'object', "it is 'x'"],
  ]
  test.each(wrong)('%s', async (_what, tasks, ...words) => {
    await refused(() => run(tasks), 'TASK_INVALID', ...words)
    await refused(() => Runners.streamTask(tasks as Given, { cls: CountingRuntime }).next(), 'TASK_INVALID', ...words)
  })
})

describe('ids and dependencies are checked before anything starts', () => {
  test('two tasks with one id', async () => {
    const twice = [echo.task(1, { id: 'a' }), echo.task(2, { id: 'b' }), echo.task(3, { id: 'a' })]
    await refused(() => run(twice), 'TASK_DUPLICATE_ID', "'a'", 'unique')
  })

  const tasks = (dependencies: Record<string, string[]>) =>
    Object.entries(dependencies).map(([id, dependsOn]) => echo.task(id, { id, dependsOn }))

  test('a dependency that is not there', async () => {
    await refused(() => run(tasks({ a: [], b: ['a', 'zz'] })), 'DEPENDENCY_UNKNOWN', "task 'b'", "'zz'")
  })

  test('a circle is named, without those who only lead to it', async () => {
    const circle = tasks({ start: [], a: ['start', 'c'], b: ['a'], c: ['b'], after: ['c'] })
    const error = await refused(() => run(circle), 'DEPENDENCY_CYCLE', "'a'", "'b'", "'c'", 'needs')
    expect(error.message).not.toMatch(/'start'|'after'/)
  })

  test('a task that depends on itself', async () => {
    await refused(() => run(tasks({ a: ['a'] })), 'DEPENDENCY_CYCLE', "'a' needs 'a'")
  })

  test('dependencies together with sequenceDependent', async () => {
    const config = { sequenceDependent: true }
    await refused(() => run(tasks({ a: [], b: ['a'] }), config), 'CONFIG_INVALID', "task 'b'", 'dependsOn', 'use one')
  })

  test('dependencies in an iterable', async () => {
    await refused(() => run(new Set(tasks({ a: ['b'] }))), 'DEPENDENCY_NEEDS_ARRAY', "task 'a'", 'array')
  })
})
