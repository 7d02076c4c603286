import { defineAgent, LocalRuntime, ParallelizableAgent, Runners, SerialableAgent } from 'manyworlds'
import { afterAll, describe, expect, test } from 'vitest'
import { echo, sleeper } from '../agents/basics.ts'
import { CountingRuntime, refused } from '../support/refused.ts'

// What users give wrongly is, on purpose, what the compiler would not let them.
// biome-ignore lint/suspicious/noExplicitAny: it is the point
type Given = any
const run = async () => 1

afterAll(() => Runners.shutdown())

describe('a definition with a mistake', () => {
  const wrong: [what: string, definition: unknown, ...words: string[]][] = [
    ['nothing', undefined, 'one object', 'defineAgent({ name'],
    ['null', null, 'one object'],
    ['a function', run, 'one object'],
    ['no name', { run }, '`name`', 'non-empty string'],
    ['an empty name', { name: '', run }, '`name`', 'non-empty string'],
    ['a number as name', { name: 5, run }, '`name`', 'non-empty string'],
    ['no run', { name: 'a' }, '`run`', "'a'", 'it is undefined'],
    ['run is no function', { name: 'a', run: 'x' }, '`run`', "'a'", 'must be a function', 'it is string'],
    ['setup is no function', { name: 'a', run, setup: {} }, '`setup`', "'a'", 'must be a function', 'it is object'],
    ['an unknown key', { name: 'a', run, model: 'm' }, "unknown key 'model'", "'a'", '`params`'],
    ['a path as module', { name: 'a', run, module: './agents.ts' }, '`module`', 'import.meta.url', "'./agents.ts'"],
    ['a number as module', { name: 'a', run, module: 5 }, '`module`', 'import.meta.url'],
  ]
  test.each(wrong)('%s', async (_what, definition, ...words) => {
    await refused(() => defineAgent(definition as Given), 'AGENT_INVALID', 'defineAgent', ...words)
  })

  test('an agent in a test file is refused when it is used, and told to move', async () => {
    const here = defineAgent({ name: 'here', run })
    const tasks = [echo.task(1), here.task(1)]
    const words = ["'here'", 'bad-agents.test.ts', 'Move the agent to a module of its own']
    await refused(() => Runners.runTask(tasks, { cls: CountingRuntime }), 'AGENT_IN_TEST_FILE', ...words)
  })

  test('a module that is not there fails the run with its name', async () => {
    const lost = defineAgent({ name: 'lost', run, module: new URL('./agents/not-there.ts', import.meta.url) })
    await refused(() => Runners.runTask(lost.task(1)), 'AGENT_LOAD_FAILED', 'not-there.ts', "'lost'")
  })

  test('a module that is not a file fails the run with its name', async () => {
    const remote = defineAgent({ name: 'remote', run, module: 'https://example.com/agent.ts' })
    await refused(() => Runners.runTask(remote.task(1)), 'AGENT_LOAD_FAILED', 'https://example.com/agent.ts')
  })

  test('an agent that its module does not define is named, with those that it does', async () => {
    const missing = defineAgent({ name: 'missing', run, module: new URL('../agents/basics.ts', import.meta.url) })
    const words = ["'missing'", 'basics.ts', "'echo', 'sleeper', 'where'", 'top level']
    await refused(() => Runners.runTask([missing.task(1)]), 'AGENT_NOT_FOUND', ...words)
  })
})

describe('a group with a mistake', () => {
  const wrong: [what: string, options: unknown, ...words: string[]][] = [
    ['nothing', undefined, 'give { agents'],
    ['no agents', {}, '`agents`', 'at least one'],
    ['an empty list', { agents: [] }, '`agents`', 'at least one'],
    ['not a list', { agents: echo }, '`agents`', 'array'],
    ['a function as agent', { agents: [echo, run] }, 'agents[1]', 'defineAgent'],
    ['null as agent', { agents: [null] }, 'agents[0]', 'defineAgent'],
    ['one name twice', { agents: [echo, sleeper, echo] }, "'echo'", 'keyed by name'],
    ['AWorld’s spelling', { agents: [echo], aggregate_func: run }, "unknown key 'aggregate_func'", 'aggregateFunc'],
    ['an aggregate that is no function', { agents: [echo], aggregateFunc: 'sum' }, '`aggregateFunc`', 'function'],
    ['a name that is none', { name: '', agents: [echo] }, '`name`', 'non-empty string'],
  ]
  test.each(wrong)('%s', async (_what, options, ...words) => {
    await refused(() => new ParallelizableAgent(options as Given), 'AGENT_INVALID', ...words)
    await refused(() => new SerialableAgent(options as Given), 'AGENT_INVALID', ...words)
  })

  test('spread that is neither true nor false', async () => {
    const options = { agents: [echo], spread: 'yes' } as Given
    await refused(() => new ParallelizableAgent(options), 'AGENT_INVALID', '`spread`', 'true or false')
  })
})

describe('syncRunTask', () => {
  const sync = (tasks: Given, config?: Given) => () => Runners.syncRunTask(tasks, config)

  test('what cannot work while the thread is blocked', async () => {
    await refused(sync(new Set([echo.task(1)])), 'SYNC_UNSUPPORTED', 'array', 'iterable')
    await refused(sync(echo.task(1)), 'SYNC_UNSUPPORTED', '[task]')
    await refused(sync([echo.task(1)], { signal: AbortSignal.abort() }), 'SYNC_UNSUPPORTED', '`signal`', 'deadlineMs')
    await refused(sync([echo.task(1)], { cls: LocalRuntime }), 'SYNC_UNSUPPORTED', '`cls`', 'runTask')
  })

  test('the same mistakes as elsewhere have the same names', async () => {
    await refused(sync([echo.task(1)], { worker_num: 2 }), 'CONFIG_INVALID', "did you mean 'workerNum'")
    await refused(sync([echo.task(1)], null), 'CONFIG_INVALID', 'it is null')
    await refused(sync([echo.task(1), null]), 'TASK_INVALID', 'task 2')
    await refused(sync([{ input: 1, agent: {} }]), 'TASK_INVALID', '`agent`', 'defineAgent')
    await refused(sync([echo.task({ f: run }, { id: 'a' })]), 'INPUT_NOT_SERIALIZABLE', "task 'a'", '`f` is a function')
    const twice = [echo.task(1, { id: 'a' }), echo.task(2, { id: 'a' })]
    await refused(sync(twice), 'TASK_DUPLICATE_ID', "'a'")
    await refused(sync([echo.task(1, { dependsOn: ['zz'] })]), 'DEPENDENCY_UNKNOWN', "'zz'")
  })

  test('it works after mistakes as before', () => {
    expect(Runners.syncRunTask([echo.task('fine')]).get('#1')?.answer).toBe('fine')
  })
})
