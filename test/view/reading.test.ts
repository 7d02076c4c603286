import { execFileSync } from 'node:child_process'
import { copyFileSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Runners } from 'manyworlds'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import {
  type AttemptChunk,
  type ComparedRuns,
  ROLES,
  type RunDetails,
  type RunFigures,
  type RunList,
  type SearchLine,
  STATES,
  type Start,
  type StepLine,
  type TaskChunk,
  type TaskDetails,
} from '../../src/view/api.ts'
import { Place } from '../../src/view/read/place.ts'
import { shown } from '../agents/viewed.ts'
import { changed, storeFolder } from '../store/store-folder.ts'
import { rowsOf, served } from './served.ts'

/** Runs as many real tasks would have written them: bench/view/make-store.ts. */
let made = ''
/** More than is read or sent at once. */
let large = ''

beforeAll(() => {
  ;[made, large] = [1, 2].map(() => mkdtempSync(join(tmpdir(), 'manyworlds-view-'))) as [string, string]
  const script = join(import.meta.dirname, '../../bench/view/make-store.ts')
  for (const [folder, run, seed, tasks, steps] of [
    [made, 'made', '1', '1200', '6'],
    [made, 'other', '2', '1200', '6'],
    [large, 'many-attempts', '3', '5200', '0'],
    [large, 'many-steps', '4', '1', '900'],
  ] as const)
    execFileSync(process.execPath, [script, '--tasks', tasks, '--steps', steps, '--run', run, '--seed', seed, folder])
})

afterAll(async () => {
  for (const folder of [made, large]) rmSync(folder, { recursive: true, force: true })
  await Runners.shutdown()
})

const hostile = '<img src=x onerror=alert(1)>\u202e\x1b[31m'

/** A run with everything that is awkward. */
async function awkward() {
  const { store } = storeFolder()
  await Runners.runTask(
    [
      shown.task({ text: 'plain' }, { id: 'plain' }),
      shown.task({ text: hostile, log: hostile }, { id: hostile }),
      shown.task({ text: 'Ein Text mit ÄÖÜ und "Anführungszeichen"\nund Zeilen' }, { id: 'deutsch' }),
      shown.task({ text: 'x'.repeat(50_000) }, { id: 'long-text' }),
      ...[17, 18].map((n) =>
        shown.task({ text: 'f', fail: `order ${n} not found in 0xdeadbeef${n}` }, { id: `fail-${n}` }),
      ),
      shown.task({ text: 'f', fail: 'something else' }, { id: 'fail-else' }),
    ],
    { store, runId: 'awkward', workerNum: 1 },
  )
  return { store, ...(await served(store)) }
}

describe('the viewer reads', () => {
  it('what it shows, and the list of runs', async () => {
    const { get } = await served(made)
    expect(await get<Start>('/api/start')).toMatchObject({ place: made, route: '#/' })
    const { runs, trainings } = await get<RunList>('/api/runs')
    expect(runs.map(({ runId }) => runId).toSorted()).toEqual(['made', 'other'])
    expect(runs[0]).toMatchObject({ status: 'finished', total: 1200, engineName: 'local' })
    expect(trainings).toEqual([])
    expect(await (await served(storeFolder().store)).get<RunList>('/api/runs')).toEqual({ runs: [], trainings: [] })
  })

  it('a run, its agents, workers, sessions and evaluation', async () => {
    const { get } = await served(made)
    const details = await get<RunDetails>('/api/run?run=made')
    expect(details.agents.map(({ key, name }) => `${key} ${name}`)).toEqual([
      '1 support-desk',
      '2 maze-walker',
      '3 summarizer',
    ])
    expect(details.workers).toHaveLength(12)
    expect(details.workers[0]).toMatchObject({ key: 1, session: 1, id: 'w1', joinedAt: expect.any(Number) })
    expect(details.sessions).toMatchObject([{ number: 1, ending: 'finished', config: { workerNum: 12 } }])
    const { evaluation } = details
    expect(evaluation).toMatchObject({ rollouts: 1200, tasks: 300 })
    expect(await get('/api/evaluation?run=made')).toEqual(evaluation)
    const figures = await get<RunFigures>('/api/figures?run=made')
    expect(figures.success).toMatchObject({ value: evaluation!.success!.value })
    expect(figures.usage.inputTokens).toBeGreaterThan(1000)
  })

  it('all tasks and all attempts, column by column', async () => {
    const { get, lines } = await served(made)
    const chunks = await lines<TaskChunk>('/api/tasks?run=made')
    const rows = rowsOf(chunks)
    const { overview } = await get<RunDetails>('/api/run?run=made')
    const own = chunks.flatMap(({ parent, state }) => state.filter((_, at) => parent[at] === 0))
    for (const [name, count] of Object.entries(overview.counts))
      expect(
        own.filter((state) => STATES[state] === name),
        name,
      ).toHaveLength(count)
    expect(rows.get(1)).toMatchObject({ id: 'question-000001' })
    for (const chunk of chunks)
      for (const [name, column] of Object.entries(chunk))
        if (name !== 'causes' && name !== 'cursor') expect(column, name).toHaveLength(chunk.task.length)
    const causes = chunks.flatMap((chunk) => chunk.causes)
    expect(causes.length).toBeLessThan(15)
    expect(new Set(causes.map(({ key }) => key)).size).toBe(causes.length)
    expect(causes).toContainEqual(expect.objectContaining({ code: 'TASK_TIMEOUT' }))
    // A second client is told all causes too, under the same keys.
    expect((await lines<TaskChunk>('/api/tasks?run=made')).flatMap((chunk) => chunk.causes)).toEqual(causes)
    const attempts = await lines<AttemptChunk>('/api/attempts?run=made')
    const roles = attempts.flatMap(({ role }) => role)
    expect(roles.filter((role) => ROLES[role] === 'final')).toHaveLength(rows.size)
    expect(roles).toContain(ROLES.indexOf('retried'))
    for (const { startedAt, endedAt } of attempts)
      for (const [at, start] of startedAt.entries()) expect(endedAt[at]!).toBeGreaterThanOrEqual(start)
  })

  it('every task and every attempt of a large run once', async () => {
    const { lines } = await served(large)
    const tasks = await lines<TaskChunk>('/api/tasks?run=many-attempts')
    const attempts = await lines<AttemptChunk>('/api/attempts?run=many-attempts')
    expect(attempts.length).toBeGreaterThan(1)
    const count = rowsOf(tasks).size
    expect(count).toBeGreaterThanOrEqual(5200)
    expect(tasks.flatMap(({ task }) => task)).toEqual(Array.from({ length: count }, (_, at) => at + 1))
    const wanted = [...rowsOf(tasks)].flatMap(([task, row]) =>
      Array.from({ length: row.attempts }, (_, at) => `${task} ${at + 1}`),
    )
    const seen = attempts.flatMap((chunk) => chunk.task.map((task, at) => `${task} ${chunk.attempt[at]}`))
    expect(seen.toSorted()).toEqual(wanted.toSorted())
  })

  it('all changes of a large run, no task twice in one of them', async () => {
    const { lines, events } = await served(large)
    const rows = rowsOf(await lines<TaskChunk>('/api/tasks?run=many-attempts'))
    const reader = events('/api/events?run=many-attempts&after=0.0.0.0')
    const chunks = () => reader.events.flatMap((event) => (event.kind === 'run' && event.tasks) || [])
    await expect.poll(() => rowsOf(chunks()).size).toBe(rows.size)
    for (const { task } of chunks()) expect(new Set(task).size).toBe(task.length)
    for (const [task, { id }] of rowsOf(chunks())) expect(id).toBe(rows.get(task)!.id)
  })

  it('a task with its attempts, steps, rollouts and sub-tasks', async () => {
    const { get, lines } = await served(made)
    const task = await get<TaskDetails>('/api/task?run=made&task=question-000001%404')
    expect(task).toMatchObject({ runId: 'made', task: 4, state: 'success', info: { metadata: { level: 1 } } })
    expect(task.rollouts.map(({ id, rollout }) => `${rollout} ${id}`)).toEqual([
      '1 question-000001',
      '2 question-000001@2',
      '3 question-000001@3',
      '4 question-000001@4',
    ])
    const [attempt] = task.attempts
    expect(attempt).toMatchObject({ role: 'final', branches: [{ id: 0, parent: null }], logs: { left: 0 } })
    const path = `run=made&task=question-000001%404&start=${attempt!.start}`
    const steps = await lines<StepLine>(`/api/steps?${path}`)
    expect(steps.map(({ step }) => step.index)).toEqual([0, 1, 2, 3, 4, 5])
    expect(await lines(`/api/steps?${path}&from=4`)).toEqual(steps.slice(4))
    expect(await get(`/api/step?${path}&index=2`)).toEqual(steps[2])
    const chunks = await lines<TaskChunk>('/api/tasks?run=made')
    const parent = chunks.flatMap((chunk) => chunk.parent).find((number) => number > 0)!
    const { id } = rowsOf(chunks).get(parent)!
    const { subTasks } = await get<TaskDetails>(`/api/task?run=made&task=${encodeURIComponent(id)}`)
    expect(subTasks).toEqual(['first', 'second'].map((part) => ({ id: `${id}/${part}`, state: 'success' })))
    const child = await get<TaskDetails>(`/api/task?run=made&task=${encodeURIComponent(`${id}/first`)}`)
    expect(child).toMatchObject({ parentId: id, attempts: [{ start: null }], rollouts: [] })
  })

  it('the texts of tokens, from the raw reply of the model', async () => {
    const { get, lines } = await served(made)
    // Every fourth task has tokens.
    for (let number = 1; number <= 20; number++) {
      const id = encodeURIComponent(`question-${String(number).padStart(6, '0')}@4`)
      const task = await get<TaskDetails>(`/api/task?run=made&task=${id}`)
      if (task.agentName !== 'support-desk' || task.state !== 'success') continue
      const steps = await lines<StepLine>(`/api/steps?run=made&task=${id}&start=${task.attempts.at(-1)!.start}`)
      const model = steps.filter(({ step }) => step.kind === 'model')
      expect(model.length).toBeGreaterThan(0)
      for (const { step, tokenTexts } of model) {
        const { tokens } = step as unknown as { tokens: { completion: { $: string; value: number[] } } }
        expect(tokens.completion.$).toBe('Int32Array')
        expect(tokenTexts).toHaveLength(tokens.completion.value.length)
      }
      return
    }
    throw new Error('no such task')
  })

  it('two runs side by side, flips first', async () => {
    const { get } = await served(made)
    const compared = await get<ComparedRuns>('/api/compare?a=made&b=other')
    expect(compared).toMatchObject({ a: 'made', b: 'other', tasks: 300 })
    const flips = new Set([...compared.flips.toSolved, ...compared.flips.toUnsolved])
    expect(flips.size).toBeGreaterThan(0)
    expect(compared.rows.slice(0, flips.size).every(({ id }) => flips.has(id))).toBe(true)
    expect(compared.rows[0]).toMatchObject({ a: { rollouts: 4 }, b: { rollouts: 4 } })
    for (const side of ['a', 'b'] as const) {
      const sum = (of: 'rollouts' | 'solved') => compared.rows.reduce((total, row) => total + (row[side]![of] ?? 0), 0)
      const { rollouts, solved } = compared.summaries[side]
      expect({ rollouts: sum('rollouts'), solved: sum('solved') }).toEqual({ rollouts, solved })
    }
  })

  it('hostile ids and texts as they are, and cuts what is long', async () => {
    const { get, lines } = await awkward()
    const id = encodeURIComponent(hostile)
    const task = await get<TaskDetails>(`/api/task?run=awkward&task=${id}`)
    expect(task).toMatchObject({ id: hostile, input: { text: hostile }, attempts: [{ answer: { said: hostile } }] })
    const rows = rowsOf(await lines<TaskChunk>('/api/tasks?run=awkward'))
    expect([...rows.values()].map((row) => row.id)).toContain(hostile)
    const long = await get<TaskDetails>('/api/task?run=awkward&task=long-text')
    expect(long.input).toEqual({ text: { $: 'cut', value: 'x'.repeat(20_000), length: 50_000 } })
    const whole = (of: string) => get(`/api/value?run=awkward&task=long-text&of=${of}&attempt=0`)
    expect(await whole('input')).toEqual({ value: { text: 'x'.repeat(50_000) } })
    expect(await whole('answer')).toEqual({ value: { said: 'x'.repeat(50_000) } })
    expect(await get('/api/value?run=awkward&task=fail-17&of=error&attempt=0')).toMatchObject({
      value: { code: 'TASK_THREW', message: expect.stringContaining('order 17') },
    })
    const path = `run=awkward&task=long-text&start=${long.attempts[0]!.start}`
    const [first] = await lines<StepLine>(`/api/steps?${path}`)
    expect(first).toMatchObject({ cut: 30_007, step: { text: { $: 'cut', length: 50_007 } } })
    const step = await get<StepLine>(`/api/step?${path}&index=0`)
    expect(step.step).toMatchObject({ text: `first: ${'x'.repeat(50_000)}` })
    expect(step.cut).toBeUndefined()
  })

  it('a log line of 10 MB, cut at first', async () => {
    const { get, store } = await awkward()
    const lines = ['before', 'long line '.repeat(1_000_000), 'after']
    const sql = `UPDATE _attempts SET logs = ? WHERE task = (SELECT task FROM _tasks WHERE id = 'plain')`
    changed(join(store, 'store.sqlite'), sql, JSON.stringify(lines))
    const { attempts } = await get<TaskDetails>('/api/task?run=awkward&task=plain')
    expect(attempts[0]!.logs).toEqual({ lines: ['before', lines[1]!.slice(0, 20_000)], left: 2 })
    expect(await get('/api/logs?run=awkward&task=plain&attempt=1')).toEqual({ lines, left: 0 })
  })

  it('failures grouped by cause, whatever numbers are in their messages', async () => {
    const { lines } = await awkward()
    const chunks = await lines<TaskChunk>('/api/tasks?run=awkward')
    const rows = [...rowsOf(chunks).values()].filter(({ cause }) => cause !== null)
    const cause = (id: string) => rows.find((row) => row.id === id)!.cause
    expect(rows).toHaveLength(3)
    expect(cause('fail-17')).toBe(cause('fail-18'))
    expect(cause('fail-17')).not.toBe(cause('fail-else'))
    expect(chunks[0]!.causes.find(({ key }) => key === cause('fail-else'))).toMatchObject({
      code: 'TASK_THREW',
      message: 'something else',
    })
  })

  it('mistakes as one error', async () => {
    const { error } = await awkward()
    expect(await error('/api/run?run=nothing')).toMatchObject({ status: 404, code: 'RUN_NOT_FOUND' })
    expect(await error('/api/run')).toMatchObject({ status: 400, message: expect.stringContaining('`run`') })
    expect(await error('/api/task?run=awkward&task=nothing')).toMatchObject({ status: 404, code: 'TASK_NOT_FOUND' })
    expect(await error('/api/steps?run=awkward&task=plain&start=999')).toMatchObject({ status: 404 })
    expect(await error('/api/steps?run=awkward&task=plain&start=x')).toMatchObject({ status: 400 })
    expect(await error('/api/value?run=awkward&task=plain&of=secrets')).toMatchObject({ status: 400 })
    expect(await error('/api/value?run=awkward&task=plain&of=answer&attempt=9')).toMatchObject({ status: 404 })
    expect(await error('/api/training?training=nothing')).toMatchObject({ status: 404, code: 'RUN_NOT_FOUND' })
    expect(await error('/api/events?run=awkward&after=x')).toMatchObject({ status: 400 })
    expect(await error('/api/nothing')).toMatchObject({ status: 404 })
  })
})

describe('a search', () => {
  const hitsOf = (lines: readonly SearchLine[]) => lines.flatMap((line) => (line.kind === 'hit' ? [line.hit] : []))

  it('finds ids, inputs, answers, errors, logs and steps, in any case', async () => {
    const { lines } = await awkward()
    const search = async (text: string) =>
      hitsOf(await lines<SearchLine>(`/api/search?run=awkward&text=${encodeURIComponent(text)}`))
    const places = async (text: string, id: string) =>
      (await search(text))
        .filter((hit) => hit.id === id)
        .map(({ place, step }) => (step === undefined ? place : `${place} ${step}`))
    expect(await places('PLAIN', 'plain')).toEqual(['id', 'answer', 'input', 'step 0', 'step 1'])
    expect(await places('äöü', 'deutsch')).toEqual(['answer', 'input', 'step 0', 'step 1'])
    expect(await places('"Anführungszeichen"\nund', 'deutsch')).toEqual(['answer', 'input', 'step 0', 'step 1'])
    expect(await places(hostile, hostile)).toEqual(['id', 'answer', 'input', 'log', 'step 0', 'step 1'])
    expect(await places('not found', 'fail-17')).toEqual(['error', 'input'])
    expect(await search('nowhere to be found')).toEqual([])
    const [hit] = await search('ZEILEN')
    expect(hit!.excerpt.slice(hit!.from, hit!.from + hit!.length)).toBe('Zeilen')
  })

  it('looks at every step of a long attempt', async () => {
    const { lines } = await served(large)
    const hits = hitsOf(await lines<SearchLine>('/api/search?run=many-steps&text=part'))
    const steps = hits.filter(({ place }) => place === 'step').map(({ step }) => step)
    expect(steps).toEqual(Array.from({ length: 900 }, (_, index) => index))
  })

  it('streams, tells how far it is, finds what is compressed, and ends at a limit', async () => {
    const { lines, error } = await served(made)
    const found = await lines<SearchLine>('/api/search?run=made&text=question')
    expect(found.at(-1)).toEqual({ kind: 'end', hits: 1000, limited: true })
    const none = await lines<SearchLine>('/api/search?run=made&text=zebra')
    expect(none[0]).toMatchObject({ kind: 'progress', searched: 0 })
    expect(none.at(-1)).toEqual({ kind: 'end', hits: 0, limited: false })
    // Actions are stored as differences from the one before.
    const actions = hitsOf(await lines<SearchLine>('/api/search?run=made&text=%22energy%22%3A97'))
    expect(actions.length).toBeGreaterThan(100)
    expect(actions.every(({ place, step }) => place === 'step' && step === 3)).toBe(true)
    expect(await error('/api/search?run=made&text=')).toMatchObject({ status: 400 })
  })
})

describe('a copied file', () => {
  it('is shown, whatever its name is', async () => {
    const { store, own } = storeFolder()
    await Runners.runTask([shown.task({ text: 'x' }, { id: 'x' })], {
      store: own('nightly'),
      runId: 'nightly',
      workerNum: 1,
    })
    copyFileSync(own('nightly'), join(store, 'sent-by-mail.sqlite'))
    rmSync(own('nightly'))
    for (const place of [Place.folder(store), Place.file(join(store, 'sent-by-mail.sqlite'))]) {
      const { get } = await served(place)
      const { runs } = await get<RunList>('/api/runs')
      expect(runs).toMatchObject([{ runId: 'nightly', status: 'finished' }])
      expect(await get('/api/task?run=nightly&task=x')).toMatchObject({ state: 'success' })
    }
    // A store of many runs under another name.
    copyFileSync(join(made, 'store.sqlite'), join(store, 'all.sqlite'))
    const { get } = await served(Place.file(join(store, 'all.sqlite')))
    expect((await get<RunList>('/api/runs')).runs.map(({ runId }) => runId).toSorted()).toEqual(['made', 'other'])
    expect(await get('/api/run?run=other')).toMatchObject({ overview: { runId: 'other' } })
  })
})
