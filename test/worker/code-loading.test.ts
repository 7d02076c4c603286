import { describe, expect, test } from 'vitest'
import { workerFlags } from '../../src/runners/environment.ts'
import { expectOneError, printed, runScript } from '../support/run-script.ts'

describe('workers find the agents of a script', () => {
  test('in one file, without a main(), and what it prints is printed once', async () => {
    const ended = await runScript('one-file.ts')
    expect(printed(ended)).toEqual([
      'printed once',
      [
        ['a', 'HELLO!'],
        ['b', { double: 4, isWorker: true }],
      ],
      { isWorker: false },
      'AGAIN!',
    ])
    expect(ended.stderr).toBe('and this once\n')
    expect(ended.code).toBe(0)
  })

  const scripts: [script: string, why: string, expected: unknown][] = [
    ['other-module.ts', 'they are in another module', ['from a module', true]],
    ['factory.ts', 'a function of another module made them', [2, 11, 6]],
    ['async-main.ts', 'it has an async main(), and one is defined in there', [2, 10]],
    ['slow-neighbour.ts', 'one module takes long to load while the script itself waits', [1, 2]],
    ['stream.ts', 'it streams', 30],
    ['blocking.ts', 'it blocks', { squares: [9, 16], sameWorker: true, turns: 0 }],
    ['executor.ts', 'it has an executor of its own', ['#1', 9]],
    ['throws-below.ts', 'it fails in workers only below the definition', 7],
  ]
  test.each(scripts)('%s: %s', async (script, _why, expected) => {
    const ended = await runScript(script)
    expect(printed(ended)).toEqual([expected])
    expect(ended.stderr).toBe('')
    expect(ended.code).toBe(0)
  })

  test('params are the driver’s, whatever the worker’s own evaluation came to', async () => {
    const ended = await runScript('params.ts')
    expect(printed(ended)).toEqual([[true, [true, 3, 1], [5, 5, 3, 1]]])
    expect(ended.stderr).toBe('')
  })
})

describe('a script whose agents workers cannot find fails with one clear error', () => {
  test('an agent defined after the first awaited run', async () => {
    const ended = await runScript('too-late.ts')
    expect(printed(ended)).toEqual(['first is done'])
    const words = ["'late'", 'too-late.ts', "only 'first'", 'move its defineAgent above']
    expectOneError(ended, 'AGENT_DEFINED_TOO_LATE', ...words)
  })

  test('an agent that only the driver defines', async () => {
    const ended = await runScript('driver-only.ts')
    expectOneError(ended, 'AGENT_NOT_FOUND', "'hidden'", 'driver-only.ts', 'no agent', 'top level of a module')
  })

  test('an agent that is another one in the worker', async () => {
    const ended = await runScript('mismatch.ts')
    expect(ended.stdout, 'never a wrong answer').toBe('')
    expectOneError(ended, 'AGENT_MISMATCH', "'two-faced'", 'mismatch.ts', '`params`')
  })

  test('two agents of one name', async () => {
    const ended = await runScript('redefined.ts')
    expectOneError(ended, 'AGENT_REDEFINED', "'twice'", 'redefined.ts', 'give each its own')
  })

  test('a module that fails in workers only', async () => {
    const ended = await runScript('throws-in-worker.ts')
    const words = ["'never'", 'throws-in-worker.ts', 'RangeError: this machine has no such file']
    expect(ended.stderr).toContain('AGENT_LOAD_FAILED')
    for (const word of words) expect(ended.stderr).toContain(word)
    // Where it failed, in the user's own file; the message alone says it too.
    expect(ended.stderr).toMatch(/throws-in-worker\.ts:3:/)
    expect(ended.stderr).toMatch(/no such file \(at \S+throws-in-worker\.ts:3:\d+\)/)
    expect(ended.code).toBe(1)
  })

  const program = `import { defineAgent, Runners } from 'manyworlds'
    const a = defineAgent({ name: 'a', run: async () => 1 })
    await Runners.runTask(a.task(0))`

  test('code on the command line', async () => {
    const ended = await runScript(undefined, { flags: ['--input-type=module', '-e', program] })
    expectOneError(ended, 'AGENT_MODULE_UNKNOWN', "'a'", 'move it to a module', '`module: import.meta.url`')
  })

  test('code on stdin', async () => {
    const ended = await runScript(undefined, { flags: ['--input-type=module'], stdin: program })
    expectOneError(ended, 'AGENT_MODULE_UNKNOWN', "'a'", 'stdin')
  })

  test('code on the command line that uses agents of a module is fine', async () => {
    const { href } = new URL('../agents/basics.ts', import.meta.url)
    const ended = await runScript(undefined, {
      flags: [
        '--input-type=module',
        '-e',
        `${program.split('\n')[0]}
        const { echo } = await import(${JSON.stringify(href)})
        console.log(JSON.stringify((await Runners.runTask(echo.task('fine'))).answer))`,
      ],
    })
    expect(printed(ended)).toEqual(['fine'])
    expect(ended).toMatchObject({ code: 0, stderr: '' })
  })
})

describe('a mistake that nobody catches is one error, printed once', () => {
  test.each([
    ['config', 'CONFIG_INVALID', "did you mean 'workerNum'"],
    ['input', 'INPUT_NOT_SERIALIZABLE', '`callback` is a function'],
    ['stream', 'TASK_DUPLICATE_ID', "'a'"],
    ['not-awaited', 'CONFIG_INVALID', '`workerNum`'],
  ])('%s', async (mistake, code, words) => {
    expectOneError(await runScript('mistake.ts', { args: [mistake] }), code, words)
  })

  test('source', async () => {
    const ended = await runScript('mistake.ts', { args: ['source'] })
    expect(ended.stderr).toContain('SOURCE_FAILED')
    expect(ended.stderr).toContain('no more rows')
    expect(ended.code).toBe(1)
  })
})

describe('workers have the surroundings of their script', () => {
  interface RunHost {
    driver: { argv: string[]; cwd: string }
    worker: {
      argv: string[]
      execArgv: string[]
      cwd: string
      debugged: boolean
      env: Record<string, string | null>
      ours: string[]
    }
  }
  const look = async (options: Parameters<typeof runScript>[1]) => {
    const ended = await runScript('surroundings.ts', options)
    expect(ended.code, ended.stderr).toBe(0)
    return { ...(printed(ended)[0] as RunHost), stderr: ended.stderr }
  }

  test('arguments, folder and environment, but not the keys of models', async () => {
    const env = { OPENAI_API_KEY: 'sk-secret', PATH: process.env.PATH ?? '' }
    const { driver, worker } = await look({ args: ['--depth', '3'], cwd: '/tmp', env })
    expect(worker.argv).toEqual(driver.argv)
    expect(worker.argv.slice(2)).toEqual(['--depth', '3'])
    expect(worker.cwd).toBe(driver.cwd)
    expect(worker.env).toMatchObject({ PATH: env.PATH, MY_SETTING: 'given', OPENAI_API_KEY: null })
    expect(worker.ours, 'what we pass to a worker is not left for programs that tasks start').toEqual([
      'MANYWORLDS_OWNER',
    ])
  })

  test('flags of node, but not the driver’s debugger and watcher', async () => {
    const data = 'data:text/javascript,globalThis.preloaded=1'
    const flags = ['--inspect=0', '--conditions=special', '--import', data, '--stack-trace-limit=20']
    const { worker, stderr } = await look({ flags })
    expect(worker.execArgv).toEqual(['--conditions=special', '--import', data, '--stack-trace-limit=20'])
    expect(worker.debugged).toBe(false)
    expect(stderr.match(/Debugger listening/g)).toHaveLength(1)
  })

  test('a debugger from NODE_OPTIONS does not come along, the rest of it does', async () => {
    const { worker } = await look({ env: { NODE_OPTIONS: '--inspect=0 --conditions=special' } })
    expect(worker.debugged).toBe(false)
    expect(worker.env.NODE_OPTIONS?.trim()).toBe('--conditions=special')
  })

  test.each([
    ['--watch --watch-path ./src --import x', '--import x'],
    ['--test-only --import x --test-reporter spec --test', '--import x'],
    ['-e code --require y', '--require y'],
    ['--inspect-brk=9229 --inspect-port 5 --max-old-space-size=100', '--max-old-space-size=100'],
    ['--env-file=.env --experimental-strip-types', '--env-file=.env --experimental-strip-types'],
  ])('of the flags %s they get %s', (driver, worker) => {
    expect(workerFlags(driver.split(' ')).join(' ')).toBe(worker)
  })

  test('the key of a model is passed when the run says so, and missed with a hint how', async () => {
    const env = { OPENAI_API_KEY: 'sk-secret' }
    const [missed] = printed(await runScript('model-key.ts', { env })) as string[]
    expect(missed).toContain('OPENAI_API_KEY is missing')
    expect(missed).toContain('env: { OPENAI_API_KEY: process.env.OPENAI_API_KEY }')
    expect(printed(await runScript('model-key.ts', { env, args: ['--pass'] }))).toEqual(['sk-secret'])
    const [unset] = printed(await runScript('model-key.ts')) as string[]
    expect(unset, 'no hint where there is nothing to pass').toBe('OPENAI_API_KEY is missing')
  })
})
