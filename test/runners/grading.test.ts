import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { Runners } from 'manyworlds'
import { judgementOfTrajectory } from 'manyworlds/grade'
import { RunFile } from 'manyworlds/runs'
import { afterAll, describe, expect, it, onTestFinished } from 'vitest'
import type { ComparedRuns, RunDetails, TaskChunk } from '../../src/view/api.ts'
import { doubler, equals, leaves, looks, mishap, says, seesLeftovers, selfGraded, snoop } from '../agents/graded.ts'
import { recorder } from '../agents/recorders.ts'
import { manyworlds } from '../cli/manyworlds.ts'
import { query, storeFolder } from '../store/store-folder.ts'
import { refused } from '../support/refused.ts'
import { served } from '../view/served.ts'

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
  const kinds = ['throws', 'hangs', 'exits', 'blocks', 'nan', 'nothing', 'misspells', 'kills'] as const
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
    misspells: 'GRADE_INVALID',
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
  const named = {
    hangs: 'did not end within 4000 ms',
    exits: 'called process.exit(3)',
    blocks: 'blocked the event loop',
  }
  for (const [id, what] of Object.entries(named))
    expect(responses.get(id)!.grade!.error!.message).toContain(`grader 'mishap' ${what}`)
  expect(responses.get('kills')!.grade!.error!.message).toContain("the worker that ran grader 'mishap' ended")
  expect(responses.get('nan')!.grade!.error!.message).toContain("grader 'mishap' returned the reward NaN")
  expect(responses.get('misspells')!.grade!.error!.message).toContain(
    "grader 'mishap' returned the unknown key 'succes', did you mean 'success'?",
  )
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

it('an answer that waits for its grade has no result, while its run goes on and after it was killed', async () => {
  const { store, file } = storeFolder()
  const tasks = Array.from({ length: 60 }, (_, index) => doubler.task(index, { id: `t${index}` }))
  await Runners.runTask(tasks, { store, runId: 'wrong', workerNum: 1, grade: equals })
  const driver = spawn(process.execPath, [join(import.meta.dirname, '../scripts/grade/waits-for-grades.ts'), store], {
    env: { ...process.env, VITEST: undefined },
    stdio: 'ignore',
  })
  const gone = once(driver, 'exit')
  onTestFinished(() => void driver.kill('SIGKILL'))
  const stored = () =>
    query(
      file('slow'),
      `SELECT (SELECT count(*) FROM responses WHERE run_id = 'slow') AS answers,
      (SELECT count(*) FROM grades WHERE run_id = 'slow') AS grades`,
    )[0]
  await expect.poll(stored, { timeout: 60_000 }).toEqual({ answers: 60, grades: 30 })
  const viewer = await served(store)
  const figures = async () => {
    using run = RunFile.open('slow', { store })
    const shown = (await manyworlds(['show', 'slow', '--dir', store])).stdout
    const compared = JSON.parse(
      (await manyworlds(['compare', 'wrong', 'slow', '--dir', store, '--anyway', '--json'])).stdout,
    )
    const trajectories: (boolean | null)[] = []
    for await (const one of run.trajectories()) trajectories.push(judgementOfTrajectory(one).solved)
    const details = await viewer.get<RunDetails>('/api/run?run=slow')
    const [page] = await viewer.lines<TaskChunk>('/api/tasks?run=slow')
    const comparison = await viewer.get<ComparedRuns>('/api/compare?a=wrong&b=slow&anyway=1')
    return { shown, compared, trajectories, evaluation: details.evaluation, solved: page!.solved, comparison }
  }
  const expected = {
    shown: expect.stringMatching(/solved +0\.0 % .* 0 of 30.*30 GRADING_PENDING/s),
    compared: { tasks: 30, success: { b: 0, value: 0 }, withoutResult: { length: 30 } },
    trajectories: expect.arrayContaining([false, null]),
    evaluation: { solved: 0, unsolved: 30, withoutResult: 30, failures: { infrastructure: { GRADING_PENDING: 30 } } },
    comparison: { tasks: 30, success: { b: 0, value: 0 }, summaries: { b: { withoutResult: 30 } } },
  }
  const live = await figures()
  expect(live).toMatchObject(expected)
  driver.kill('SIGKILL')
  await gone
  const killed = await figures()
  expect(killed).toMatchObject(expected)
  for (const { trajectories, solved } of [live, killed]) {
    expect(trajectories.filter((one) => one === null)).toHaveLength(30)
    expect(trajectories).not.toContain(true)
    expect(solved.filter((one) => one === 0)).toHaveLength(30)
    expect(solved.filter((one) => one === null)).toHaveLength(30)
  }
}, 180_000)

it('what is no grader is refused before work starts', async () => {
  await refused(
    () => Runners.runTask(doubler.task(1), { ...base, grade: (() => 1) as never }),
    'CONFIG_INVALID',
    'grade',
  )
  await refused(() => Runners.runTask([doubler.task(1, { grade: {} as never })], base), 'TASK_INVALID', '`grade`')
})

it('the same if the grader came with a resumed session', async () => {
  const { store, file } = storeFolder()
  const tasks = Array.from({ length: 60 }, (_, index) => doubler.task(index, { id: `t${index}` }))
  await Runners.runTask(tasks, { store, runId: 'late', workerNum: 1 })
  const script = join(import.meta.dirname, '../scripts/grade/waits-for-grades.ts')
  const driver = spawn(process.execPath, [script, store, 'late'], {
    env: { ...process.env, VITEST: undefined },
    stdio: 'ignore',
  })
  const gone = once(driver, 'exit')
  onTestFinished(() => void driver.kill('SIGKILL'))
  const grades = () => query(file('late'), `SELECT count(*) AS n FROM grades WHERE run_id = 'late'`)[0]
  await expect.poll(grades, { timeout: 60_000 }).toEqual({ n: 30 })
  driver.kill('SIGKILL')
  await gone
  using run = RunFile.open('late', { store })
  const pending = [...run.responses()].filter(({ grade }) => grade?.error?.code === 'GRADING_PENDING')
  expect(pending).toHaveLength(30)
  const solved: (boolean | null)[] = []
  for await (const one of run.trajectories()) solved.push(judgementOfTrajectory(one).solved)
  expect(solved.filter((one) => one === null)).toHaveLength(30)
  expect(solved).not.toContain(true)
  const exported = await manyworlds(['export', 'late', '--dir', store, '--format', 'jsonl', '--only-success'])
  expect(exported.stdout.trim()).toBe('')
}, 180_000)
