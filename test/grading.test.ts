import { join } from 'node:path'
import { Runners } from 'manyworlds'
import { RunFile } from 'manyworlds/runs'
import { afterAll, describe, expect, it } from 'vitest'
import { doubler, equals, leaves, looks, mishap, says, seesLeftovers, selfGraded, snoop } from './agents/graded.ts'
import { recorder } from './agents/recorders.ts'
import { refused } from './refused.ts'
import { query, storeFolder } from './store/store-folder.ts'

afterAll(() => Runners.shutdown())

const base = { store: false, workerNum: 2, concurrency: 8 } as const

describe('a response', () => {
  it('has the grade that its task, its run or its agent asks for, in this order', async () => {
    const tasks = [
      selfGraded.task('a', { groundTruth: 'A' }),
      selfGraded.task('b', { groundTruth: '?' }),
      selfGraded.task('c', { groundTruth: '?', grade: equals }),
    ]
    const [a, b, c] = [...(await Runners.runTask(tasks, base)).values()]
    expect(a!.grade).toEqual({
      reward: 1,
      success: true,
      feedback: 'a became A',
      grader: { name: 'self-graded.grade', sha256: expect.stringMatching(/^[0-9a-f]{64}$/) },
    })
    expect(b!.grade).toMatchObject({ reward: 0.25, success: false })
    expect(c!.grade).toMatchObject({ reward: 0, success: false, grader: { name: 'equals' } })
    const [byRun] = [...(await Runners.runTask([tasks[0]!], { ...base, grade: equals })).values()]
    expect(byRun!.grade).toMatchObject({ reward: 1, grader: { name: 'equals' } })
    const plain = await Runners.runTask(doubler.task(1), base)
    expect('grade' in plain).toBe(false)
  })

  it('is graded in a worker, with what a grader may see', async () => {
    const task = recorder.task({ steps: 2 }, { id: 'one', groundTruth: { x: 1 }, metadata: { level: 3 }, tools: ['t'] })
    for (const store of [false, storeFolder().store] as const) {
      const responses = await Runners.runTask([task], { ...base, store, grade: looks })
      const { pid, sample } = JSON.parse(responses.get('one')!.grade!.feedback!)
      expect(pid).not.toBe(process.pid)
      expect(sample).toMatchObject({
        answer: 2,
        groundTruth: { x: 1 },
        task: { id: 'one', input: { steps: 2 }, metadata: { level: 3 }, tools: ['t'] },
        trajectory: [{ action: 0 }, { action: 1 }],
      })
    }
  })

  it('is not graded when its task failed', async () => {
    const failing = recorder.task({ steps: 3, ms: 10_000 }, { timeoutMs: 100 })
    const [response] = [...(await Runners.runTask([failing], { ...base, grade: equals })).values()]
    expect(response).toMatchObject({ status: 'timeout' })
    expect('grade' in response!).toBe(false)
  })
})

it('a grader that throws, hangs, crashes, blocks or says nothing gives no reward, and nothing runs again', async () => {
  const kinds = ['throws', 'hangs', 'exits', 'blocks', 'nan', 'nothing', 'kills'] as const
  const tasks = kinds.map((kind) => says.task(kind, { id: kind }))
  const { store } = storeFolder()
  const responses = await Runners.runTask(tasks, { ...base, store, grade: mishap, gradeTimeoutMs: 4000, runId: 'bad' })
  const codes = Object.fromEntries([...responses].map(([id, { grade }]) => [id, grade!.error?.code]))
  expect(codes).toEqual({
    throws: 'GRADER_THREW',
    hangs: 'GRADER_TIMEOUT',
    exits: 'GRADER_CRASHED',
    blocks: 'GRADER_BLOCKED_WORKER',
    nan: 'GRADE_INVALID',
    nothing: 'GRADE_INVALID',
    kills: 'GRADER_CRASHED',
  })
  for (const { grade, status, attempts } of responses.values())
    expect({ status, attempts, reward: grade!.reward, success: grade!.success }).toEqual({
      status: 'success',
      attempts: 1,
      reward: null,
      success: null,
    })
  expect(responses.get('throws')!.grade!.error!.message).toBe('cannot grade this')
  expect(responses.get('nan')!.grade!.error!.message).toContain("grader 'mishap' returned the reward NaN")
  expect(query(join(store, 'store.sqlite'), 'SELECT id, count(*) AS n FROM attempts GROUP BY id HAVING n > 1')).toEqual(
    [],
  )
})

it('nothing that the runtime gives an agent contains the ground truth', { timeout: 180_000 }, async () => {
  const secret = `secret-${Math.random().toString(36).slice(2)}`
  const reversed = [...secret].reverse().join('')
  const tasks = Array.from({ length: 20 }, (_, i) =>
    snoop.task({ reversed }, { id: `s${i}`, groundTruth: secret, metadata: { i } }),
  )
  for (const response of (await Runners.runTask(tasks, { ...base, grade: equals, rollouts: 2 })).values())
    expect(response.error ?? response.answer).toEqual([])
})

it('what an agent leaves behind is told to stop before its grader looks', async () => {
  const responses = await Runners.runTask([leaves.task(1, { id: 'l' })], {
    ...{ ...base, workerNum: 1 },
    grade: seesLeftovers,
  })
  expect(responses.get('l')!.grade!.feedback).toContain('the task has ended')
})

describe('with a store', () => {
  it('grades are there, and come back with a resumed run', async () => {
    const { store } = storeFolder()
    const tasks = Array.from({ length: 20 }, (_, i) =>
      doubler.task(i, { id: `d${i}`, groundTruth: i < 5 ? -1 : i * 2 }),
    )
    const first = await Runners.runTask(tasks, { ...base, store, grade: equals, runId: 'g' })
    const again = await Runners.runTask(tasks, { ...base, store, grade: equals, resume: 'g' })
    for (const [id, { grade, restored }] of again) {
      expect(restored).toBe(true)
      expect(grade).toEqual(first.get(id)!.grade)
    }
    expect(
      query(
        join(store, 'store.sqlite'),
        'SELECT success, count(*) AS n, sum(reward) AS reward FROM responses GROUP BY success',
      ),
    ).toEqual([
      { success: 0, n: 5, reward: 0 },
      { success: 1, n: 15, reward: 15 },
    ])
    expect(query(join(store, 'store.sqlite'), 'SELECT count(*) AS n FROM grades WHERE is_latest')).toEqual([{ n: 20 }])
    using file = RunFile.open('g', { store })
    expect([...file.responses()].map(({ grade }) => grade?.grader.name)).toEqual(tasks.map(() => 'equals'))
  })

  it('answers that were not graded are graded by a resumed run, and not run again', async () => {
    const { store } = storeFolder()
    const tasks = Array.from({ length: 5 }, (_, i) => doubler.task(i, { id: `d${i}`, groundTruth: i * 2 }))
    await Runners.runTask(tasks, { ...base, store, runId: 'late' })
    const graded = await Runners.runTask(tasks, { ...base, store, resume: 'late', grade: equals })
    for (const response of graded.values())
      expect(response).toMatchObject({ restored: true, grade: { reward: 1, success: true } })
    expect(query(join(store, 'store.sqlite'), 'SELECT count(*) AS n FROM attempts')).toEqual([{ n: 5 }])
  })
})

it('what is no grader is refused before work starts', async () => {
  await refused(
    () => Runners.runTask(doubler.task(1), { ...base, grade: (() => 1) as never }),
    'CONFIG_INVALID',
    'grade',
  )
  await refused(() => Runners.runTask([doubler.task(1, { grade: {} as never })], base), 'TASK_INVALID', '`grade`')
})
