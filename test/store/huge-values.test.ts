import { serialize } from 'node:v8'
import { Runners } from 'manyworlds'
import { RunFile } from 'manyworlds/runs'
import { afterAll, describe, expect, test } from 'vitest'
import { isSameValue } from '../../src/store/same-value.ts'
import { echo } from '../agents/basics.ts'
import { HUGE, type Huge, huge, sparse } from '../agents/huge.ts'
import { manyworlds } from '../cli/manyworlds.ts'
import { CountingRuntime, refused } from '../support/refused.ts'
import { changed, storeFolder } from './store-folder.ts'

afterAll(() => Runners.shutdown())

/** What cannot be sent, and words of the error that says so. */
const REFUSED: Partial<Record<Huge, string>> = {
  'a sparse array': 'it is an array of 4000000001 places, of which more than 262144 are empty',
  'a sparse array of the greatest length': 'it is an array of 4294967295 places',
  'a sparse array inside': '`pages.0.scores` is an array of 4000000001 places',
  'sparse arrays that are too large together': '`2` is an array of 100001 places',
  'a sparse array that a list would hold': 'it is an array of 20000001 places',
  'a value nested too deep': 'it is nested more than 1000 levels deep',
}
const WHAT = Object.keys(HUGE) as Huge[]
const ONE_RUN = { workerNum: 1, concurrency: 4, deadlineMs: 120_000 }

describe('a value that is huge neither hangs the run nor harms its neighbours', () => {
  test('as an answer: it is stored, or the task fails with the path to it', async () => {
    const { store, file } = storeFolder()
    const tasks = WHAT.flatMap((what, i) => [huge.task({ what, how: 'answer' }, { id: what }), echo.task(i)])
    const responses = await Runners.runTask(tasks, { store, runId: 'r', ...ONE_RUN })
    for (const what of WHAT) {
      const { success, answer, error } = responses.get(what)!
      expect(success, `${what}: ${error?.message}`).toBe(REFUSED[what] === undefined)
      if (success) expect(isSameValue(answer, HUGE[what]()), what).toBe(true)
      else
        expect(`${error.code}: ${error.message}`).toContain(
          `ANSWER_NOT_SERIALIZABLE: the answer cannot be sent: ${REFUSED[what]}`,
        )
    }
    expect([...responses.values()].filter(({ agentName, success }) => agentName === 'echo' && success)).toHaveLength(
      WHAT.length,
    )

    using run = RunFile.open(file('r'))
    for (const { id, success, answer } of run.responses())
      if (success && id in HUGE) expect(isSameValue(answer, HUGE[id as Huge]()), id).toBe(true)
    for (const words of [
      ['show'],
      ['show', '--json'],
      ['show', '--logs'],
      ['show', '--logs', '--full'],
      ['tail', '--from-start'],
    ]) {
      const { code, stderr, stdout } = await manyworlds([words[0]!, file('r'), ...words.slice(1)])
      expect(code, `${words.join(' ')}: ${stderr}`).toBe(0)
      expect(stdout).toContain('ANSWER_NOT_SERIALIZABLE')
    }
  }, 240_000)

  test('as a text of megabytes that is thrown, or in the message of an error', async () => {
    const what = 'a long text'
    const timeoutMs = 20_000
    const tasks = [
      huge.task({ what, how: 'throw' }, { id: 'text', timeoutMs }),
      huge.task({ what, how: 'message' }, { id: 'message', timeoutMs }),
      echo.task(1, { id: 'neighbour', rerun: 'never' }),
    ]
    const responses = await Runners.runTask(tasks, { store: false, ...ONE_RUN, workerNum: 1 })
    const ends = [...responses.values()].map(({ id, status, error }) => [id, status, error?.code])
    expect(ends).toEqual([
      ['text', 'failed', 'TASK_THREW'],
      ['message', 'failed', 'TASK_THREW'],
      ['neighbour', 'success', undefined],
    ])
  }, 120_000)

  test('as a step, in what is thrown, in what is printed, from a sub-task', async () => {
    const { store } = storeFolder()
    const what = 'a sparse array inside'
    const ways = ['step', 'throw', 'cause', 'log', 'subtask'] as const
    const tasks = ways.map((how) => huge.task({ what, how }, { id: how }))
    const responses = await Runners.runTask([...tasks, echo.task(1)], { store, ...ONE_RUN, progress: () => {} })
    const messages = ways.map((how) => responses.get(how)!.error?.message ?? responses.get(how)!.answer)
    expect(messages).toEqual([
      'ctx.step(): the step cannot be recorded: `observation.pages.0.scores` is an array of 4000000001 places, of which more than 262144 are empty; send a Map or an object; record plain data',
      expect.stringMatching(/was thrown$/),
      'it failed',
      'printed',
      { success: false, message: expect.stringContaining('`pages.0.scores` is an array of 4000000001 places') },
    ])
    expect(responses.get('log')!.logs).toHaveLength(2)
  })

  test('as an input: it is refused before anything starts', async () => {
    const wrong = [echo.task(1), echo.task({ scores: sparse(4e9) }, { id: 'bad' })]
    const words = ["task 'bad'", '`scores` is an array of 4000000001 places']
    await refused(() => Runners.runTask(wrong, { cls: CountingRuntime }), 'INPUT_NOT_SERIALIZABLE', ...words)
  })
})

test('a run is resumed with inputs that are large, and a large one that has changed is refused', async () => {
  const { store } = storeFolder()
  const inputs: Huge[] = [
    'a large Map',
    'a large Set',
    'an object of many fields',
    'many bytes',
    'an array with a few empty places',
  ]
  const tasks = (change: number) =>
    inputs.map((what) => echo.task({ value: HUGE[what](), change: what === 'a large Set' ? change : 0 }, { id: what }))
  await Runners.runTask(tasks(0), { store, runId: 'r' })
  const again = await Runners.runTask(tasks(0), { store, resume: 'r' })
  expect([...again.values()].every(({ restored }) => restored)).toBe(true)
  await refused(
    () => Runners.runTask(tasks(1), { store, resume: 'r' }),
    'RESUME_MISMATCH',
    "task 'a large Set'",
    'Its input differs',
  )
})

test('a sparse array that is in the file already is shown, with a budget', async () => {
  const { store, file } = storeFolder()
  await Runners.runTask([echo.task(new Map([[1, 2]]), { id: 'one' })], { store, runId: 'r' })
  const bytes = serialize({ deep: [sparse(4e9), { role: 'user', content: sparse(4e9) }] })
  changed(file('r'), `UPDATE _blobs SET data = ?, size = ?`, bytes, bytes.length)
  using run = RunFile.open(file('r'))
  expect((run.task('one')!.response!.answer as { deep: unknown[][] }).deep[0]).toHaveLength(4_000_000_001)
  for (const words of [[], ['one'], ['one', '--full'], ['one', '--json'], ['--json']]) {
    const { code, stderr, stdout } = await manyworlds(['show', file('r'), ...words])
    expect(`${code} ${stderr}`).toBe('0 ')
    expect(stdout).toContain('more')
  }
  const other = echo.task(new Map([[1, 3]]), { id: 'one' })
  await refused(() => Runners.runTask([other], { store, resume: 'r' }), 'RESUME_MISMATCH', 'Its input differs')
})
