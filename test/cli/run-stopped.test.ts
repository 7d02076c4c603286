import { writeFileSync } from 'node:fs'
import { RunFile } from 'manyworlds/runs'
import { describe, expect, it } from 'vitest'
import { abortReason } from '../../src/executor/abort-reason.ts'
import { printed, runScript } from '../support/run-script.ts'
import { inBackground } from './background.ts'
import { manyworlds } from './manyworlds.ts'
import { project } from './project.ts'

/** Runs that came to nothing: what is said of them, and what is left. */

const stored = (path: (file: string) => string, runId: string) => {
  using run = RunFile.open(runId, { store: path('.manyworlds/runs') })
  return run.overview()
}
const times = (text: string, words: string) => text.split(words).length - 1

const HEAD = `import { defineAgent, Runners } from 'manyworlds'
  const echo = defineAgent({ name: 'echo', run: (n: number) => n })
  const tasks = Array.from({ length: 200 }, (_, n) => echo.task(n, { id: 't' + n }))`
/** Nobody listens on port 1. */
const NODES = "{ engineName: 'nodes', nodes: { addresses: ['127.0.0.1:1'], waitMs: 100 } }"
const UNREACHABLE = 'no node can be used'

describe('a run whose engine cannot be reached', () => {
  it('says so once, is listed as failed with the error, and can be resumed', async () => {
    const { path, options } = project({
      'away.ts': `${HEAD}\nawait Runners.runTask(tasks, ${NODES})`,
      'here.ts': `${HEAD}\nconsole.log((await Runners.runTask(tasks, { workerNum: 1, resume: 'r' })).size)`,
    })
    for (const flags of [[], ['--no-progress'], ['--quiet']]) {
      const ended = await manyworlds(['run', 'away.ts', '--run-id', `r${flags.join('')}`, ...flags], options)
      expect(ended.code).toBe(1)
      expect(times(ended.stderr, UNREACHABLE), ended.stderr).toBe(1)
      expect(ended.stderr).toContain('[NODES_UNREACHABLE]')
    }
    expect(stored(path, 'r')).toMatchObject({ status: 'failed', error: expect.stringContaining(UNREACHABLE) })
    const list = await manyworlds(['runs'], options)
    expect(list.stdout).toMatch(/^r +failed .* 0\/200 .*\n +.*no node can be used/m)
    const shown = await manyworlds(['show', 'r'], options)
    expect(shown.stdout.replaceAll(/\s+/g, ' ')).toContain('Start one there with `manyworlds node --listen HOST:PORT`')
    expect(await runScript(path('here.ts'), options)).toMatchObject({ code: 0, stdout: '200\n' })
    expect(stored(path, 'r')).toMatchObject({ status: 'finished', counts: { success: 200 } })
  }, 60_000)

  it('says so once, if the script keeps the error to itself', async () => {
    const { options } = project({ 'away.ts': `${HEAD}\nawait Runners.runTask(tasks, ${NODES}).catch(() => {})` })
    const ended = await manyworlds(['run', 'away.ts'], options)
    expect(ended.code).toBe(1)
    expect(times(ended.stderr, UNREACHABLE), ended.stderr).toBe(1)
    const wrapped = project({
      'away.ts': `${HEAD}\nawait Runners.runTask(tasks, ${NODES}).catch((cause) => { throw new Error('not today', { cause }) })`,
    })
    const thrown = await manyworlds(['run', 'away.ts'], wrapped.options)
    expect(thrown.stderr).toContain('not today')
    expect(thrown.stderr).not.toMatch(/^manyworlds: run .* failed:/m)
  }, 60_000)
})

describe('a run whose signal is aborted', () => {
  const script = (abort: string) => `import { setTimeout as sleep } from 'node:timers/promises'
    import { defineAgent, Runners } from 'manyworlds'
    const nap = defineAgent({ name: 'nap', run: (ms: number, ctx) => sleep(ms, 'slept', { signal: ctx.signal }) })
    const stop = new AbortController()
    ${abort}
    const tasks = Array.from({ length: 20 }, (_, n) => nap.task(n === 0 ? 1 : 60_000))
    for await (const { id, status, error } of Runners.streamTask(tasks, { workerNum: 1, concurrency: 4, runId: 'r', signal: stop.signal })) {
      if (status === 'success') onFirst()
      else if (id === '#20') console.log(JSON.stringify([status, error.code, error.message, error.cause?.message ?? error.cause ?? null]))
    }`

  const REASONS: [string, string, unknown][] = [
    ["new RangeError('too late')", 'RangeError: too late', 'too late'],
    ['() => {}', '[Function (anonymous)]', null],
  ]

  it.each(REASONS)(
    'while it goes on, with %s',
    async (reason, text, cause) => {
      const { path, options } = project({ 's.ts': script(`const onFirst = () => stop.abort(${reason})`) })
      const ended = await runScript(path('s.ts'), options)
      expect(printed(ended), ended.stderr).toEqual([
        ['cancelled', 'TASK_CANCELLED', `the task was cancelled: ${text}`, cause],
      ])
      expect(stored(path, 'r')).toMatchObject({
        ...{ status: 'interrupted', counts: { success: 1 } },
        error: `its signal was aborted: ${text}`,
      })
    },
    60_000,
  )

  it('before it began: it is listed as interrupted, with the reason', async () => {
    const abort = "const onFirst = () => {}; stop.abort(new Error('the customer left'))"
    const { path, options } = project({ 's.ts': script(abort) })
    const ended = await runScript(path('s.ts'), options)
    expect(printed(ended), ended.stderr).toEqual([
      ['cancelled', 'TASK_CANCELLED', 'the task was cancelled: the customer left', 'the customer left'],
    ])
    expect(stored(path, 'r')).toMatchObject({ status: 'interrupted' })
    const shown = await manyworlds(['show', 'r'], options)
    expect(shown.stdout).toMatch(/^run r interrupted .*\n {2}its signal was aborted: the customer left$/m)
  }, 60_000)

  it('without a reason, and at its deadline, says that', async () => {
    const plain = project({ 's.ts': script('const onFirst = () => stop.abort()') })
    await runScript(plain.path('s.ts'), plain.options)
    expect(stored(plain.path, 'r')).toMatchObject({ status: 'interrupted', error: 'its signal was aborted' })
    const late = project({
      's.ts': script('const onFirst = () => {}').replace('signal: stop.signal', 'deadlineMs: 1500'),
    })
    await runScript(late.path('s.ts'), late.options)
    const error = 'it reached its deadline (deadlineMs: 1500)'
    expect(stored(late.path, 'r')).toMatchObject({ status: 'interrupted', error })
  }, 60_000)
})

it('a run that stopped at its deadline, its budget or without its model says how to resume it', async () => {
  const HEAD = `import { setTimeout as sleep } from 'node:timers/promises'
    import { defineAgent, Runners } from 'manyworlds'`
  const { path, options } = project({
    'late.ts': `${HEAD}
      const nap = defineAgent({ name: 'nap', run: (ms: number, ctx) => sleep(ms, 1, { signal: ctx.signal }) })
      await Runners.runTask([nap.task(1), nap.task(60_000)], { workerNum: 1, deadlineMs: 1500 })`,
    'spent.ts': `${HEAD}
      const pays = defineAgent({ name: 'pays', run: (_: number, ctx) => ctx.step({ usage: { costUsd: 1 } }) })
      await Runners.runTask([1, 2, 3].map((n) => pays.task(n)), { workerNum: 1, concurrency: 1, maxCostUsd: 1 })`,
    'lost.ts': `${HEAD}
      const asks = defineAgent({ name: 'asks', run: async (_: number, ctx) => (await ctx.generate({ model: 'm', prompt: 'hi' })).text })
      const models = { m: { baseURL: 'http://127.0.0.1:1/v1', model: 'm', maxRetries: 2 } }
      await Runners.runTask([1, 2].map((n) => asks.task(n)), { workerNum: 1, models })`,
  })
  for (const name of ['late', 'spent', 'lost']) {
    const { code, stderr } = await manyworlds(['run', `${name}.ts`, '--run-id', name], options)
    expect(stderr).toMatch(new RegExp(`finished tasks are kept. Resume with:\\n .* run ${name}.ts --resume ${name}\\n`))
    expect([name, code, stored(path, name).status]).toEqual([name, 1, 'interrupted'])
  }
  expect(stored(path, 'lost').error).toContain("model 'm' is not available")
}, 90_000)

describe('a run of which only grades are missing', () => {
  /** One of two answers is graded at once. The other one's grader waits for a file, in another session. */
  const begin = (config = '') =>
    project({
      's.ts': `import { existsSync } from 'node:fs'
        import { setTimeout as sleep } from 'node:timers/promises'
        import { defineAgent, defineGrader, Runners } from 'manyworlds'
        const echo = defineAgent({ name: 'echo', run: (n: number) => n })
        const slow = defineGrader({
          name: 'slow',
          grade: async ({ answer }, ctx) => {
            if (answer === 1 && !existsSync('open')) await sleep(60_000, undefined, { signal: ctx.signal })
            return true
          },
        })
        const responses = await Runners.runTask([echo.task(0), echo.task(1)], { workerNum: 1, grade: slow, ${config} })
        console.log(JSON.stringify([...responses.values()].map(({ grade }) => grade?.error?.code ?? grade?.success)))`,
    })
  const graded = (path: (file: string) => string) => {
    using run = RunFile.open('r', { store: path('.manyworlds/runs') })
    return [...run.responses()].map(({ attempts, grade }) => [attempts, grade?.error?.code ?? grade?.success])
  }
  const resumes = async ({ path, options }: ReturnType<typeof begin>) => {
    expect(graded(path)).toEqual([
      [1, true],
      [1, 'GRADING_PENDING'],
    ])
    writeFileSync(path('open'), '')
    const resumed = await manyworlds(['run', 's.ts', '--resume', 'r', '--deadline', '1m'], options)
    expect(resumed).toMatchObject({ code: 0, stdout: '[true,true]\n' })
    expect(graded(path)).toEqual([
      [1, true],
      [1, true],
    ])
  }

  it.each([
    ['at its deadline', 'deadlineMs: 3000', 'it reached its deadline (deadlineMs: 3000)'],
    ['when its signal is aborted', 'signal: AbortSignal.timeout(3000)', 'its signal was aborted: TimeoutError'],
  ])(
    'ends %s, and a resume grades them',
    async (_, config, error) => {
      const { path, options } = begin(config)
      const ended = await manyworlds(['run', 's.ts', '--run-id', 'r'], options)
      expect(ended).toMatchObject({ code: 1, stdout: '[true,"GRADING_CANCELLED"]\n' })
      expect(ended.stderr).toMatch(/^run r interrupted /m)
      expect(ended.stderr).toContain('Resume with:')
      expect(stored(path, 'r')).toMatchObject({ status: 'interrupted', error: expect.stringContaining(error) })
      await resumes({ path, options })
    },
    60_000,
  )

  it('ends after the grace period of Ctrl-C', async () => {
    const { path, options } = begin()
    const run = inBackground(['run', 's.ts', '--run-id', 'r', '--grace', '100ms', '--json'], options)
    await expect.poll(run.output, { timeout: 30_000 }).toContain('"status":"success"')
    run.child.kill('SIGINT')
    expect(await run.exited).toBe(130)
    expect(run.output()).toContain('1 task is running and may take 0.1 s more')
    expect(run.output()).toContain('"state":"interrupted"')
    await resumes({ path, options })
  }, 60_000)
})

it.each([
  [new Error('the customer left'), 'the customer left', true],
  [new TypeError('no'), 'TypeError: no', true],
  ['no money', 'no money', true],
  [{ budget: 0 }, '{ budget: 0 }', true],
  [null, 'null', true],
  [Object.create(null), '[Object: null prototype] {}', true],
  [Symbol('stop'), 'Symbol(stop)', false],
  [new DOMException('The operation timed out', 'TimeoutError'), 'TimeoutError: The operation timed out', true],
  ['x'.repeat(1e6), 'x'.repeat(500), true],
])('the reason of an abort in words: %o', (reason, text, copied) => {
  const found = abortReason(AbortSignal.abort(reason))
  expect([found.text, 'thrown' in found]).toEqual([text, copied])
})
