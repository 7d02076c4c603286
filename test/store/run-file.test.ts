import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { DistributedExecutor, Runners } from 'manyworlds'
import { RunFile } from 'manyworlds/runs'
import { afterAll, describe, expect, it } from 'vitest'
import { echo } from '../agents/basics.ts'
import { succeedsAt, thrower } from '../agents/failing.ts'
import { chat, ledger, odd, parent } from '../agents/ledger.ts'
import { confuses, finds } from '../agents/subtasks.ts'
import { printed, runScript } from '../support/run-script.ts'
import { userProject } from '../support/user-project.ts'
import { query, storeFolder } from './store-folder.ts'

afterAll(() => Runners.shutdown())

describe('the run file', () => {
  it('gives any response by its number', async () => {
    const { store } = storeFolder()
    const tasks = Array.from({ length: 50 }, (_, at) => echo.task(at))
    await Runners.runTask(tasks, { store, runId: 'r' })
    using run = RunFile.open('r', { store })
    const all = [...run.seen()]
    expect(all).toHaveLength(50)
    for (const { seq, response } of all)
      expect(run.seenAt(seq)).toMatchObject({ id: response.id, answer: response.answer })
    expect(run.seenAt(run.lastSeq() + 1)).toBeUndefined()
    expect(run.seenAt(0)).toBeUndefined()
  })

  it('finds a sub-task by the id it was given, unless several were given that id', async () => {
    const { store } = storeFolder()
    await Runners.runTask(
      [finds.task('context', { id: 'p' }), finds.task('context', { id: 'q' }), confuses.task(undefined, { id: 'r' })],
      { store, runId: 'r' },
    )
    using run = RunFile.open('r', { store })
    expect(run.task('a')).toMatchObject({ id: 'r/a', parentId: 'r', response: { answer: 2 } })
    expect(run.task('r/a')).toMatchObject({ id: 'r/a', response: { answer: 2 } })
    expect(run.task('r/r/a')).toMatchObject({ id: 'r/r/a', response: { answer: 4 } })
    expect(run.task('p/one')).toMatchObject({ id: 'p/one' })
    expect(run.task('three')).toBeUndefined()
    expect(() => run.task('one')).toThrow(
      expect.objectContaining({
        code: 'TASK_NOT_FOUND',
        message: expect.stringMatching(/several sub-tasks .*'one'.*: p\/one, q\/one$/),
      }),
    )
  })

  it('has the configuration, tasks, attempts, responses, trajectories, logs and timings, for any SQLite tool', async () => {
    const { store, file } = storeFolder()
    const tasks = [
      succeedsAt.task(2, { id: 'second-time', groundTruth: 42, metadata: { from: 'a test' } }),
      thrower.task('string', { id: 'throws' }),
      echo.task({ hello: 'world' }),
    ]
    const responses = await Runners.runTask(tasks, {
      store,
      runId: 'r',
      seed: 3,
      maxAttempts: 2,
      backoffMs: 1,
      env: { SECRET_KEY: 'hush' },
    })
    const all = (view: string) => query(file('r'), `SELECT * FROM ${view}`)
    expect(all('run')).toMatchObject([{ run_id: 'r', seed: 3, total: 3, success: 2, failed: 1, sessions: 1 }])
    expect(all('sessions')).toMatchObject([{ epoch: 1, ending: 'finished', pid: process.pid }])
    expect(JSON.parse(String(all('sessions')[0]!.config))).toMatchObject({ maxAttempts: 2, env: ['SECRET_KEY'] })
    expect(all('agents').map(({ name }) => name)).toEqual(['succeeds-at', 'thrower', 'echo'])
    expect(all('tasks')).toMatchObject([
      { id: 'second-time', status: 'success', input: '2', info: '{"groundTruth":42,"metadata":{"from":"a test"}}' },
      { id: 'throws', status: 'failed' },
      { id: '#3', status: 'success', input: '{"hello":"world"}' },
    ])
    expect(
      query(file('r'), `SELECT role, status, attempt FROM attempts WHERE id = 'second-time' ORDER BY seq`),
    ).toEqual([
      { role: 'retried', status: 'failed', attempt: 1 },
      { role: 'final', status: 'success', attempt: 2 },
    ])
    const [answer] = query(file('r'), `SELECT answer, run_ms, worker FROM responses WHERE id = 'second-time'`)
    expect(JSON.parse(String(answer!.answer))).toEqual(responses.get('second-time')!.answer)
    expect(answer!.run_ms).toBeCloseTo(responses.get('second-time')!.timing.runMs, 2)
    expect(
      query(file('r'), `SELECT error_code, error ->> '$.message' AS message FROM responses WHERE id = 'throws'`),
    ).toEqual([{ error_code: 'TASK_THREW', message: "'just text' was thrown" }])
    expect(query(file('r'), `SELECT step, action FROM steps WHERE is_final`)).toEqual([
      { step: 0, action: '"attempt 2"' },
    ])
    expect(query(file('r'), `SELECT text FROM logs WHERE is_final`)).toEqual([{ text: 'attempt 2' }])
    expect(readFileSync(file('r')).includes('hush'), 'a secret in the file').toBe(false)
  })

  it('is one plain file when the run is over, in .manyworlds/runs unless told otherwise', async () => {
    const path = userProject({
      'run.ts': `import { defineAgent, Runners } from 'manyworlds'
        const a = defineAgent({ name: 'a', run: async (n: number) => n + 1 })
        const r = await Runners.runTask([a.task(1), a.task(2)])
        console.log(JSON.stringify([...r.values()].map(({ answer }) => answer)))`,
      'package.json': '{"type":"module"}',
    })
    const env = { MANYWORLDS_STORE: '' }
    expect(printed(await runScript(path('run.ts'), { cwd: path(''), env }))).toEqual([[2, 3]])
    expect(readdirSync(path('.manyworlds/runs'))).toEqual(['store.sqlite'])
    const runs = RunFile.list({ store: path('.manyworlds/runs') })
    expect(runs).toEqual([expect.stringMatching(/^\d{8}-\d{6}-[a-z2-9]{6}$/)])
    expect(printed(await runScript(path('run.ts'), { cwd: path(''), env: { MANYWORLDS_STORE: 'elsewhere' } }))).toEqual(
      [[2, 3]],
    )
    expect(readdirSync(path('elsewhere'))).toEqual(['store.sqlite'])
    expect(printed(await runScript(path('run.ts'), { cwd: path(''), env: { MANYWORLDS_STORE: 'off' } }))).toEqual([
      [2, 3],
    ])
    expect(RunFile.list({ store: path('.manyworlds/runs') })).toEqual(runs)
  })

  it.each(['mine.sqlite', 'mine.db'])('can be named by its path, %s', async (name) => {
    const { store } = storeFolder()
    const path = join(store, 'deep', name)
    await Runners.runTask(echo.task(1), { store: path, runId: 'any' })
    using run = RunFile.open(path)
    expect(run.overview()).toMatchObject({ runId: 'any', status: 'finished', counts: { success: 1 }, total: 1 })
    expect(RunFile.list({ store: join(store, 'deep') })).toEqual(['mine'])
  })

  it('is not made with store: false', async () => {
    const { store } = storeFolder()
    await Runners.runTask(echo.task(1), { store: false })
    expect(readdirSync(store)).toEqual([])
  })

  it('brings back what JSON cannot hold, exactly', async () => {
    const { store } = storeFolder()
    const input = { map: new Map([[1, 'x']]), when: new Date(7), deep: [undefined, -0] }
    const before = await Runners.runTask(odd.task(input, { id: 'o' }), { store, runId: 'r' })
    const after = await Runners.runTask(odd.task(input, { id: 'o' }), { store, resume: 'r' })
    expect(after).toEqual({ ...before, restored: true, timing: expect.anything() })
    using run = RunFile.open('r', { store })
    expect(run.task('o')!.input).toEqual(input)
  })

  it.each(['null', 'undefined', 'string', 'object', 'cause', 'subclass', 'function', 'sync-like'] as const)(
    'brings back the error when %s was thrown',
    async (what) => {
      const { store } = storeFolder()
      const before = await Runners.runTask(thrower.task(what), { store, runId: 'r' })
      const after = await Runners.runTask(thrower.task(what), { store, resume: 'r' })
      expect(after.restored).toBe(true)
      expect(after.error).toEqual(before.error)
      expect(after.error!.stack).toBe(before.error!.stack)
      expect(after.error!.cause).toEqual(before.error!.cause)
    },
  )

  it('stores large texts once, and compresses what is worth it', async () => {
    const { store, file } = storeFolder()
    const prompt = Array.from({ length: 4000 }, (_, i) => `word${i}`).join(' ')
    const noise = Array.from({ length: 20 }, (_, i) => `${i} of many`)
    const tasks = Array.from({ length: 50 }, (_, i) =>
      echo.task({
        messages: [
          { role: 'system', content: prompt },
          { role: 'user', content: `${i}` },
        ],
      }),
    )
    await Runners.runTask([...tasks, echo.task(noise)], { store, runId: 'r' })
    const size = statSync(file('r')).size
    expect(size).toBeLessThan(3 * prompt.length + 300_000)
    expect(query(file('r'), 'SELECT count(*) AS n FROM blobs WHERE size > 30000')).toEqual([{ n: 1 }])
    expect(query(file('r'), 'SELECT kind, stored < size / 2 AS small FROM blobs WHERE size > 30000')).toEqual([
      { kind: 'json+zstd', small: 1 },
    ])
    using run = RunFile.open('r', { store })
    for (const [i, task] of tasks.entries()) {
      const stored = run.task(`#${i + 1}`)!
      expect(stored.input).toEqual(task.input)
      expect(stored.response!.answer).toEqual(task.input)
    }
    // The row shows how it begins, as a JSON text: a query that looks into it finds nothing, and no error.
    expect(query(file('r'), `SELECT input ->> '$.messages' AS inside FROM tasks WHERE id = '#1'`)).toEqual([
      { inside: null },
    ])
    expect(
      query(file('r'), `SELECT substr(json_extract(input, '$'), 1, 30) AS input FROM tasks WHERE id = '#1'`),
    ).toEqual([{ input: '{"messages":[{"role":"system",' }])
  })

  it('does not grow with the square of a conversation that every step repeats', async () => {
    const { store, file } = storeFolder()
    const tasks = Array.from({ length: 10 }, (_, i) => chat.task({ turns: 50, seed: i }))
    const responses = await Runners.runTask(tasks, { store, runId: 'r' })
    const raw = [...responses.values()].reduce((sum, { trajectory }) => sum + JSON.stringify(trajectory).length, 0)
    expect(raw).toBeGreaterThan(2_000_000)
    expect(statSync(file('r')).size).toBeLessThan(raw / 8)
    using run = RunFile.open('r', { store })
    for (const [id, { trajectory }] of responses) expect(run.task(id)!.response!.trajectory).toEqual(trajectory)
  })

  it('keeps texts that look like marks of our own', async () => {
    const { store } = storeFolder()
    const input = { a: '\0' + '1', b: '\0\0', c: 'x'.repeat(5000), d: ['\0', '\u0000' + '99'] }
    const before = await Runners.runTask(echo.task(input), { store, runId: 'r' })
    const after = await Runners.runTask(echo.task(input), { store, resume: 'r' })
    expect(after.restored).toBe(true)
    expect(after.answer).toEqual(before.answer)
    expect(after.answer).toEqual(input)
  })

  it('has sub-tasks, which are not counted as tasks of the run', async () => {
    const { store, ledger: path } = storeFolder()
    await Runners.runTask(parent.task({ ledger: path }, { id: 'p' }), { store, runId: 'r' })
    using run = RunFile.open('r', { store })
    expect(run.overview()).toMatchObject({ counts: { success: 1 }, total: 1 })
    expect(run.task('p')!.subTaskIds).toEqual(['p/1.1', 'p/1.2'])
    expect(run.task('p/1.2')).toMatchObject({
      parentId: 'p',
      status: 'success',
      response: { answer: { say: 'second' } },
    })
    expect([...run.responses()].map(({ id }) => id)).toEqual(['p'])
  })

  it('is written by a DistributedExecutor too', async () => {
    const { store } = storeFolder()
    const executor = new DistributedExecutor({ store, runId: 'r', workerNum: 1 })
    for (let i = 0; i < 5; i++) executor.submitTask(echo.task(i))
    await executor.shutdown()
    using run = RunFile.open('r', { store })
    expect([...run.responses()].map(({ answer }) => answer).toSorted()).toEqual([0, 1, 2, 3, 4])
    expect(run.overview()).toMatchObject({ status: 'finished', total: 5 })
  })

  it('is written by syncRunTask too', async () => {
    const { store } = storeFolder()
    Runners.syncRunTask([echo.task('sync')], { store, runId: 'r' })
    using run = RunFile.open('r', { store })
    expect(run.task('#1')!.response!.answer).toBe('sync')
  })

  it('is found by its id, the beginning of it, or as the last one', async () => {
    const { store } = storeFolder()
    for (const runId of ['alpha-1', 'alpha-2', 'beta']) await Runners.runTask(echo.task(runId), { store, runId })
    const found = (name: string) => {
      using run = RunFile.open(name, { store })
      return run.runId
    }
    expect([found('alpha-1'), found('b'), found('last')]).toEqual(['alpha-1', 'beta', 'beta'])
    expect(() => found('alpha')).toThrow(/several runs start with 'alpha': alpha-2, alpha-1/)
    expect(() => found('gamma')).toThrow(/no run 'gamma'.*beta, alpha-2, alpha-1/)
  })

  it('shows a run while it is going on', async () => {
    const { store, ledger: path, file } = storeFolder()
    const stream = Runners.streamTask(
      [ledger.task({ ledger: path }, { id: 'quick' }), ledger.task({ ledger: path, ms: 60_000 }, { id: 'slow' })],
      { store, runId: 'r' },
    )
    expect((await stream.next()).value!.id).toBe('quick')
    using run = RunFile.open('r', { store })
    expect(run.overview()).toMatchObject({ status: 'running', counts: { success: 1 }, total: 2 })
    expect([...run.tasks()]).toEqual([
      { id: 'quick', status: 'success' },
      { id: 'slow', status: 'pending' },
    ])
    await stream.return!()
    await expect.poll(() => run.overview().status).toBe('interrupted')
    expect(existsSync(`${file('r')}-lock`)).toBe(false)
  })
})
