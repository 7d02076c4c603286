import { spawn } from 'node:child_process'
import { resolve } from 'node:path'
import { DistributedExecutor, Runners, type TaskLike } from 'manyworlds'
import { RunFile } from 'manyworlds/runs'
import { afterAll, describe, expect, it, onTestFinished } from 'vitest'
import { asker } from '../agents/askers.ts'
import { echo } from '../agents/basics.ts'
import { ledger, nest, parent } from '../agents/ledger.ts'
import { printed, runScript } from '../support/run-script.ts'
import { held, hold } from './held.ts'
import { query, storeFolder } from './store-folder.ts'

afterAll(() => Runners.shutdown())

const quick = { workerNum: 1, backoffMs: 1 }
const DIED = "the driver died while this task may have been running, and rerun: 'never' forbids another attempt"
type Folder = ReturnType<typeof storeFolder>

const some = ({ ledger: path }: Folder, count = 6) =>
  Array.from({ length: count }, (_, i) => held.task({ ledger: path, say: i }, { id: `t${i}` }))

/** Runs tasks until the run file has so many rows of this, and then aborts. */
async function runUntil<T>(
  rows: { sql: string; count: number },
  { file }: Folder,
  run: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const stop = new AbortController()
  const running = run(stop.signal)
  await expect.poll(() => query(file('r'), rows.sql), { timeout: 40_000, interval: 30 }).toHaveLength(rows.count)
  stop.abort()
  return running
}

/**
 * Runs tasks, one after the other, and leaves after so many responses. Those that come later do not end before: a response is seen
 * when it is stored, and by then a worker could have done all of the others.
 */
async function begin(
  { ledger: path }: Folder,
  tasks: Iterable<TaskLike> | AsyncIterable<TaskLike>,
  config: object,
  leaveAfter: number,
  ids: readonly string[] = Array.from(tasks as Iterable<TaskLike>, ({ id }) => id!),
): Promise<string[]> {
  const letGo = hold(path, ids.slice(leaveAfter))
  const seen: string[] = []
  for await (const { id } of Runners.streamTask(tasks as TaskLike[], config as never)) {
    seen.push(id)
    if (seen.length === leaveAfter) break
  }
  letGo()
  return seen
}

const brief = (responses: Map<string, { restored: boolean; status: string }>) =>
  [...responses].map(([id, { restored, status }]) => `${id} ${status}${restored ? ' restored' : ''}`)

describe('a run that is resumed', () => {
  it('does not run again what is done, and gives it again as restored, in the order of the tasks', async () => {
    const folder = storeFolder()
    const { store } = folder
    const tasks = some(folder)
    const done = await begin(folder, tasks, { ...quick, store, runId: 'r', concurrency: 1 }, 3)
    await expect.poll(() => statusOf(store, 'r')).toBe('interrupted')
    folder.forget()
    const results = await Runners.runTask(tasks, { ...quick, store, resume: 'r' })
    expect([...results.keys()]).toEqual(tasks.map(({ id }) => id))
    for (const [id, response] of results) {
      expect(response.success).toBe(true)
      expect(response.answer).toMatchObject({ id })
      expect(response.trajectory).toMatchObject([{ action: 'wrote', observation: id }])
    }
    for (const id of done) expect(folder.ran()).not.toContain(id)
    for (const id of folder.ran()) expect(results.get(id)!.restored).toBe(false)
    expect(statusOf(store, 'r')).toBe('finished')
    folder.forget()
    expect(brief(await Runners.runTask(tasks, { ...quick, store, resume: 'r' }))).toEqual(
      tasks.map(({ id }) => `${id} success restored`),
    )
    expect(folder.ran()).toEqual([])
  })

  it('keeps failed, timeout and crashed as they are, unless retryFailed, and runs cancelled again', async () => {
    const folder = storeFolder()
    const { store } = folder
    const tasks = [
      ledger.task({ ledger: folder.ledger, until: 9 }, { id: 'fails' }),
      ledger.task({ ledger: folder.ledger, ms: 5000 }, { id: 'slow', timeoutMs: 50 }),
      ledger.task({ ledger: folder.ledger, ms: 60_000 }, { id: 'cancelled' }),
      ledger.task({ ledger: folder.ledger }, { id: 'fine' }),
      ledger.task({ ledger: folder.ledger, ms: 60_000 }, { id: 'never', rerun: 'never' }),
    ]
    // Three are answered, and the one that must not run twice was allowed to start.
    const sql = 'SELECT id FROM responses UNION ALL SELECT id FROM _tasks WHERE begun = 1'
    const first = await runUntil({ sql, count: 4 }, folder, (signal) =>
      Runners.runTask(tasks, { ...quick, store, runId: 'r', signal }),
    )
    expect(brief(first)).toEqual([
      'fails failed',
      'slow timeout',
      'cancelled cancelled',
      'fine success',
      'never cancelled',
    ])
    folder.forget()
    const again = tasks.map((task) => (/cancelled|never/.test(task.id!) ? { ...task, timeoutMs: 100 } : task))
    expect(brief(await Runners.runTask(again, { ...quick, store, resume: 'r' }))).toEqual([
      'fails failed restored',
      'slow timeout restored',
      'cancelled timeout',
      'fine success restored',
      'never crashed',
    ])
    expect(folder.ran()).toEqual(['cancelled'])
    folder.forget()
    expect(
      brief(await Runners.runTask(again, { ...quick, store, resume: 'r', retryFailed: true, maxAttempts: 9 })),
    ).toEqual(['fails success', 'slow timeout', 'cancelled timeout', 'fine success restored', 'never timeout'])
    using run = RunFile.open('r', { store })
    expect(run.overview()).toMatchObject({ counts: { success: 2, timeout: 3, failed: 0, cancelled: 0 }, sessions: 3 })
    expect(run.task('cancelled')!.attempts.map(({ role, status }) => `${role} ${status}`)).toEqual(
      expect.arrayContaining(['superseded cancelled', 'superseded timeout', 'final timeout']),
    )
  })

  it('counts the attempts of the session before', async () => {
    const folder = storeFolder()
    const { store } = folder
    // Two tries are used up; then the run is left while it waits for the third.
    const tries = () => query(folder.file('r'), `SELECT attempt FROM attempts WHERE id = 'third'`)
    const twice = async () => {
      await expect.poll(tries, { timeout: 40_000, interval: 30 }).toHaveLength(2)
      return 'twice'
    }
    const tasks = [
      ledger.task({ ledger: folder.ledger, until: 3 }, { id: 'third' }),
      asker.task({ service: 'twice' }, { id: 'clock' }),
    ]
    const config = { workerNum: 1, store, maxAttempts: 3, backoffMs: 2000, services: { twice } }
    await begin(folder, tasks, { ...config, runId: 'r' }, 1, [])
    await expect.poll(() => statusOf(store, 'r')).toBe('interrupted')
    expect(folder.ran()).toEqual(['third', 'third'])
    const results = await Runners.runTask(tasks, { ...config, resume: 'r' })
    expect(results.get('third')).toMatchObject({ success: true, attempts: 3 })
    expect(folder.ran()).toEqual(['third', 'third', 'third'])
  })

  it('starts or resumes with auto, as a batch job that is started again wants it', async () => {
    const folder = storeFolder()
    const job = () => Runners.runTask(some(folder), { ...quick, store: folder.store, runId: 'nightly', resume: 'auto' })
    expect([...(await job()).values()].every(({ restored }) => !restored)).toBe(true)
    expect([...(await job()).values()].every(({ restored }) => restored)).toBe(true)
    expect(folder.ran()).toHaveLength(6)
  })

  it('goes on with a sequence where it stopped, with the answer of the task before', async () => {
    const folder = storeFolder()
    const { store } = folder
    const config = { ...quick, store, sequenceDependent: true }
    await begin(folder, some(folder), { ...config, runId: 'r' }, 3)
    await expect.poll(() => statusOf(store, 'r')).toBe('interrupted')
    folder.forget()
    const results = await Runners.runTask(some(folder), { ...config, resume: 'r' })
    const answers = [...results.values()].map(({ answer }) => answer as { id: string; previous?: { id: string } })
    expect(answers.map(({ previous }) => previous?.id)).toEqual([undefined, 't0', 't1', 't2', 't3', 't4'])
    expect(folder.ran().every((id) => !['t0', 't1', 't2'].includes(id))).toBe(true)
  })

  it('goes on with a graph, with the answers that a task depends on', async () => {
    const folder = storeFolder()
    const { store } = folder
    const leaf = (id: string, dependsOn: string[] = []) => held.task({ ledger: folder.ledger }, { id, dependsOn })
    const tasks = [leaf('a'), leaf('b'), leaf('both', ['a', 'b']), leaf('end', ['both'])]
    await begin(folder, tasks, { ...quick, store, runId: 'r', concurrency: 1 }, 2)
    await expect.poll(() => statusOf(store, 'r')).toBe('interrupted')
    const results = await Runners.runTask(tasks, { ...quick, store, resume: 'r' })
    expect(results.get('a')!.restored).toBe(true)
    const both = results.get('both')!.answer as { results: [string, { id: string }][] }
    expect(both.results.map(([id, answer]) => [id, answer.id])).toEqual([
      ['a', 'a'],
      ['b', 'b'],
    ])
    expect(results.get('end')!.success).toBe(true)
  })

  it('skips again what depends on a failure, and runs it once that is mended', async () => {
    const folder = storeFolder()
    const { store } = folder
    const tasks = [
      ledger.task({ ledger: folder.ledger, until: 2 }, { id: 'root' }),
      ledger.task({ ledger: folder.ledger }, { id: 'leaf', dependsOn: ['root'] }),
    ]
    expect(brief(await Runners.runTask(tasks, { ...quick, store, runId: 'r' }))).toEqual([
      'root failed',
      'leaf cancelled',
    ])
    for (let i = 0; i < 2; i++)
      expect(brief(await Runners.runTask(tasks, { ...quick, store, resume: 'r' }))).toEqual([
        'root failed restored',
        'leaf cancelled restored',
      ])
    const mended = await Runners.runTask(tasks, { ...quick, store, resume: 'r', retryFailed: true, maxAttempts: 2 })
    expect(brief(mended)).toEqual(['root success', 'leaf success'])
  })

  it.each(['iterable', 'async iterable'])('matches the tasks of an %s as they are read', async (kind) => {
    const folder = storeFolder()
    const { store } = folder
    async function* later(tasks: TaskLike[]) {
      yield* tasks
    }
    const source = (count: number): never =>
      (kind === 'iterable' ? some(folder, count).values() : later(some(folder, count))) as never
    const ids = some(folder).map(({ id }) => id!)
    const done = await begin(folder, source(6), { ...quick, store, runId: 'r', concurrency: 1 }, 2, ids)
    await expect.poll(() => statusOf(store, 'r')).toBe('interrupted')
    folder.forget()
    // An iterable may have grown meanwhile.
    const results = (await Runners.runTask(source(8), { ...quick, store, resume: 'r' })) as unknown as Map<
      string,
      never
    >
    expect([...results.keys()]).toEqual(some(folder, 8).map(({ id }) => id))
    for (const id of done) expect(folder.ran()).not.toContain(id)
    using run = RunFile.open('r', { store })
    expect(run.overview()).toMatchObject({ total: 8, counts: { success: 8 } })
  })

  it('gives a parent that runs again the sub-tasks that were done', async () => {
    const folder = storeFolder()
    const { store } = folder
    const task = parent.task({ ledger: folder.ledger, ms: 60_000 }, { id: 'p', timeoutMs: 90_000 })
    const done = { sql: `SELECT id FROM attempts WHERE id LIKE 'p/%' AND status = 'success'`, count: 2 }
    const first = await runUntil(done, folder, (signal) =>
      Runners.runTask(task, { ...quick, store, runId: 'r', signal }),
    )
    expect(first.status).toBe('cancelled')
    expect(folder.ran()).toEqual(['p', 'p/1.1', 'p/1.2'])
    folder.forget()
    const second = await Runners.runTask({ ...task, timeoutMs: 1000 }, { ...quick, store, resume: 'r' })
    expect(second.status).toBe('timeout')
    expect(folder.ran()).toEqual(['p'])
  })

  it.each([
    [
      'task',
      'pay',
      ['later'],
      [
        ['pay', 'crashed', DIED],
        ['later', 'success', null],
      ],
    ],
    ['sub-task', 'family/1.1', ['family'], [['family', 'success', 'crashed']]],
  ])(
    'does not start a %s with rerun: never a second time when the driver died',
    async (what, id, runAgain, answers) => {
      const { store, ledger: path, ran } = storeFolder()
      const script = resolve(import.meta.dirname, '../scripts/store/never.ts')
      const driver = spawn(process.execPath, [script, store, path, what], {
        env: { ...process.env, VITEST: undefined },
      })
      onTestFinished(() => void driver.kill('SIGKILL'))
      await expect.poll(() => ran(), { timeout: 60_000 }).toContain(id)
      driver.kill('SIGKILL')
      await new Promise((done) => driver.once('close', done))
      const before = ran()
      const ended = await runScript('store/never.ts', { args: [store, path, what] })
      expect(printed(ended), ended.stderr).toEqual(answers)
      expect(ran().slice(before.length)).toEqual(runAgain)
      using run = RunFile.open('r', { store })
      expect(run.task(id)!.status).toBe('crashed')
    },
    120_000,
  )

  it('tries a task with sub-tasks of sub-tasks again, and keeps tasks apart whose ids read alike', async () => {
    const { store } = storeFolder()
    const deep = await Runners.runTask(nest.task({ depth: 2, failFirst: true }, { id: 'a' }), {
      ...quick,
      store,
      runId: 'deep',
      maxAttempts: 2,
    })
    expect(deep).toMatchObject({ success: true, attempts: 2 })
    const alike = [
      nest.task({ depth: 1, child: 'b/c' }, { id: 'a' }),
      nest.task({ depth: 1, child: 'c' }, { id: 'a/b' }),
    ]
    const results = await Runners.runTask(alike, { ...quick, store, runId: 'alike' })
    expect([...results.values()].map(({ success }) => success)).toEqual([true, true])
  })

  it('takes equal inputs for equal, however v8 writes their numbers', async () => {
    const { store } = storeFolder()
    const when = new Date(0)
    const numbers = new Float64Array([3])
    await Runners.runTask(echo.task({ n: 3, when }), { ...quick, store, runId: 'r' })
    const again = await Runners.runTask(echo.task({ n: numbers[0]!, when }), { ...quick, store, resume: 'r' })
    expect(again.restored).toBe(true)
  })

  it('can be left and resumed at once in the same program', async () => {
    const folder = storeFolder()
    const config = { ...quick, store: folder.store, runId: 'r', resume: 'auto', concurrency: 1 } as const
    for (const leaveAfter of [1, 2, 3]) await begin(folder, some(folder), config, leaveAfter)
    expect([...(await Runners.runTask(some(folder), config)).values()].every(({ success }) => success)).toBe(true)
  })

  it('tells what is done also when it is stopped before it reads that far', async () => {
    const folder = storeFolder()
    const { store } = folder
    const slow = ledger.task({ ledger: folder.ledger, ms: 60_000 }, { id: 'slow', timeoutMs: 90_000 })
    const tasks = [slow, ...some(folder)]
    await runUntil({ sql: 'SELECT id FROM responses', count: 6 }, folder, (signal) =>
      Runners.runTask(tasks, { ...quick, store, runId: 'r', signal }),
    )
    const results = await Runners.runTask(tasks, { ...quick, store, resume: 'r', signal: AbortSignal.abort() })
    expect(brief(results)).toEqual(['slow cancelled', ...some(folder).map(({ id }) => `${id} success restored`)])
  })

  it('may change engine settings, timeouts and order, and tasks of a DistributedExecutor are matched as well', async () => {
    const folder = storeFolder()
    const { store } = folder
    await Runners.runTask(some(folder), { ...quick, store, runId: 'r' })
    folder.forget()
    const tasks = some(folder).map((task) => ({ ...task, timeoutMs: 5000, maxAttempts: 3, requires: [] }))
    const results = await Runners.runTask(tasks.toReversed(), {
      workerNum: 2,
      concurrency: 3,
      timeoutMs: 9,
      store,
      resume: 'r',
    })
    expect([...results.values()].every(({ restored }) => restored)).toBe(true)
    const executor = new DistributedExecutor({ store, resume: 'r' })
    for (const task of some(folder, 3)) executor.submitTask(task)
    await executor.shutdown()
    expect([...(await executor.collectResults()).values()].map(({ restored }) => restored)).toEqual([true, true, true])
    expect(folder.ran()).toEqual([])
  })

  it('gives ten thousand restored responses to one who reads slowly, and keeps to its memory', async () => {
    const { store } = storeFolder()
    const tasks = Array.from({ length: 10_000 }, (_, i) => echo.task(i))
    await Runners.runTask(tasks, { store, runId: 'r' })
    let seen = 0
    for await (const { restored } of Runners.streamTask(tasks, { store, resume: 'r' })) if (restored) seen++
    expect(seen).toBe(10_000)
  })
})

function statusOf(store: string, runId: string): string {
  using run = RunFile.open(runId, { store })
  return run.overview().status
}
