import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { copyFileSync, existsSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { Runners } from 'manyworlds'
import { afterAll, describe, expect, it } from 'vitest'
import { openForReading } from '../../src/store/open-for-reading.ts'
import {
  type AttemptChunk,
  type LiveEvent,
  ROLES,
  type RunDetails,
  type RunList,
  STATES,
  type StepLine,
  type TaskChunk,
  type TaskDetails,
} from '../../src/view/api.ts'
import { killer, shown, waitingFor } from '../agents/viewed.ts'
import { storeFolder } from '../store/store-folder.ts'
import { type EventReader, rowsOf, served } from './served.ts'

afterAll(() => Runners.shutdown())

type RunEvent = Extract<LiveEvent, { kind: 'run' }>

const runEvents = ({ events }: EventReader) => events.filter((event): event is RunEvent => event.kind === 'run')
const chunksOf = (reader: EventReader) => runEvents(reader).flatMap(({ tasks }) => tasks ?? [])
const stateOf = (reader: EventReader, id: string) => {
  const row = [...rowsOf(chunksOf(reader)).values()].find((one) => one.id === id)
  return row && STATES[row.state]
}

describe('a run in progress', () => {
  it('is shown as it goes on: tasks, a killed worker, its successor, the end', async () => {
    const { store } = storeFolder()
    /** The run goes on until this file exists. */
    const seen = join(store, 'seen')
    const running = Runners.runTask(
      [
        killer.task(null, { id: 'killer' }),
        ...Array.from({ length: 5 }, (_, n) => shown.task({ text: `${n}` }, { id: `t${n}` })),
        waitingFor.task(seen, { id: 'waiting' }),
      ],
      { store, runId: 'live', workerNum: 2, concurrency: 2, maxAttempts: 3, backoffMs: 1 },
    )
    const { events, get, lines } = await served(store)
    const list = events('/api/events')
    await expect.poll(() => list.events.at(-1)).toMatchObject({ kind: 'runs', list: { runs: [{ runId: 'live' }] } })
    const [chunk] = await lines<TaskChunk>('/api/tasks?run=live')
    const reader = events(`/api/events?run=live&after=${chunk!.cursor}`)
    const read = () => get<TaskDetails>('/api/task?run=live&task=waiting')
    // The worker that is killed may be that of the task, which then has an attempt that was interrupted.
    const runningAttempt = async () => {
      const { state, attempts } = await read()
      return { state, open: attempts.find((one) => one.role === 'unfinished' && one.state === 'running') }
    }
    await expect.poll(runningAttempt).toMatchObject({
      state: 'running',
      open: { startedAt: expect.any(Number), worker: { id: expect.any(String) } },
    })
    const steps = async () =>
      lines<StepLine>(`/api/steps?run=live&task=waiting&start=${(await runningAttempt()).open!.start}`)
    await expect.poll(steps).toMatchObject([{ step: { text: 'waiting' } }])
    // A run that is over has no successor of a lost worker.
    const hasSuccessor = async () => {
      const { workers } = await get<RunDetails>('/api/run?run=live')
      return workers.some(({ lost, leftAt }) => lost && workers.some(({ joinedAt }) => joinedAt! >= leftAt!))
    }
    await expect.poll(hasSuccessor).toBe(true)
    writeFileSync(seen, '')
    await running
    await expect.poll(() => runEvents(reader).at(-1)?.overview.status).toBe('finished')
    expect(runEvents(reader).at(-1)!.overview.counts).toMatchObject({ success: 7 })
    const rows = rowsOf([...(await lines<TaskChunk>('/api/tasks?run=live'))])
    // What the events told is what the store has.
    const merged = rowsOf([chunk!, ...chunksOf(reader)])
    expect(Object.fromEntries(merged)).toEqual(Object.fromEntries(rows))
    const { workers } = await get<RunDetails>('/api/run?run=live')
    const lost = workers.filter((worker) => worker.lost !== undefined)
    // A task that killed its worker is tried again, and may do so again.
    expect(lost.length).toBeGreaterThan(0)
    for (const worker of lost)
      expect(worker).toMatchObject({ lost: 'signal SIGKILL', leftAt: expect.any(Number), joinedAt: expect.any(Number) })
    expect(runEvents(reader).flatMap((event) => event.workers ?? [])).toContainEqual(lost[0])
    // A successor joined when the other was gone.
    expect(workers.some(({ joinedAt }) => lost.some(({ leftAt }) => joinedAt! >= leftAt!))).toBe(true)
    const attempts = await lines<AttemptChunk>('/api/attempts?run=live')
    const crashed = attempts.flatMap(({ role, state }) => role.map((one, at) => `${ROLES[one]} ${STATES[state[at]!]}`))
    expect(crashed).toContain('retried crashed')
    await expect.poll(() => list.events.at(-1)).toMatchObject({ list: { runs: [{ status: 'finished' }] } })
  })

  it('is followed again from where a client lost its connection', async () => {
    const { store } = storeFolder()
    const { events, lines } = await served(store)
    await Runners.runTask([shown.task({ text: 'a' }, { id: 'a' })], { store, runId: 'again', workerNum: 1 })
    const first = events('/api/events?run=again&after=0.0.0.0')
    await expect.poll(() => stateOf(first, 'a')).toBe('success')
    first.close()
    const tasks = ['a', 'b'].map((id) => shown.task({ text: id }, { id }))
    await Runners.runTask(tasks, { store, resume: 'again', workerNum: 1 }).catch(() => {})
    await Runners.runTask([shown.task({ text: 'x' }, { id: 'x' })], { store, runId: 'another', workerNum: 1 })
    const [chunk] = await lines<TaskChunk>('/api/tasks?run=again')
    const second = events(`/api/events?run=again&after=${first.lastId}`)
    await expect.poll(() => runEvents(second).length).toBeGreaterThan(0)
    const seen = () => [...rowsOf(chunksOf(second)).values()].map(({ id }) => id)
    await expect.poll(seen).toEqual(chunk!.id.filter((id) => id !== 'a'))
  })

  it('ends as died when its driver is killed, with nothing running', async () => {
    const { store } = storeFolder()
    const script = `import { Runners } from 'manyworlds'
      import { waiting } from ${JSON.stringify(join(import.meta.dirname, '../agents/viewed.ts'))}
      await Runners.runTask([waiting.task(60000, { id: 'w' })], { store: ${JSON.stringify(store)}, runId: 'doomed', workerNum: 1 })`
    const driver = spawn(process.execPath, ['--input-type=module', '--eval', script], {
      cwd: import.meta.dirname,
      stdio: 'inherit',
    })
    const { events, get } = await served(store)
    await expect.poll(() => get<RunDetails>('/api/run?run=doomed').catch(() => undefined)).toBeDefined()
    const reader = events('/api/events?run=doomed&after=0.0.0.0')
    await expect.poll(() => stateOf(reader, 'w')).toBe('running')
    driver.kill('SIGKILL')
    await once(driver, 'exit')
    await expect.poll(() => runEvents(reader).at(-1)?.overview.status).toBe('died')
    await expect.poll(() => stateOf(reader, 'w')).toBe('pending')
    expect(await get('/api/task?run=doomed&task=w')).toMatchObject({
      state: 'pending',
      attempts: [{ role: 'unfinished', state: 'pending' }],
    })
  })

  it('that is removed is gone', async () => {
    const { store } = storeFolder()
    const { events } = await served(store)
    await Runners.runTask([shown.task({ text: 'a' }, { id: 'a' })], { store, runId: 'brief', workerNum: 1 })
    await Runners.runTask([shown.task({ text: 'a' }, { id: 'a' })], { store, runId: 'later', workerNum: 1 })
    const reader = events('/api/events?run=brief')
    await expect.poll(() => reader.events.length).toBeGreaterThan(0)
    using db = new DatabaseSync(join(store, 'store.sqlite'))
    db.exec(`DELETE FROM _run WHERE run_id = 'brief'`)
    await expect.poll(() => reader.events.at(-1)).toMatchObject({ kind: 'gone', error: { code: 'STORE_GONE' } })
    await reader.ended
  })
})

describe('files of others', () => {
  it.each(['', 'second', 'third', 'fourth', 'fifth', 'sixth', 'seventh'])(
    'a store of an earlier version is shown: %s',
    async (version) => {
      const { store } = storeFolder()
      const fixtures = join(import.meta.dirname, '../store/fixtures', version)
      for (const name of readdirSync(fixtures).filter((one) => one.includes('.sqlite')))
        copyFileSync(join(fixtures, name), join(store, name))
      const { get, lines } = await served(store)
      const { runs } = await get<RunList>('/api/runs')
      expect(runs.map(({ runId }) => runId)).toEqual(expect.arrayContaining(['finished', 'resumed', 'late', 'killed']))
      for (const { runId } of runs) {
        await get(`/api/run?run=${runId}`)
        await get(`/api/figures?run=${runId}`)
        await lines(`/api/attempts?run=${runId}`)
        const tasks = (await lines<TaskChunk>(`/api/tasks?run=${runId}`)).flatMap(({ id }) => id)
        for (const id of tasks) {
          const task = await get<TaskDetails>(`/api/task?run=${runId}&task=${encodeURIComponent(id)}`)
          for (const { start } of task.attempts.filter((attempt) => attempt.start !== null))
            await lines(`/api/steps?run=${runId}&task=${encodeURIComponent(id)}&start=${start}`)
        }
      }
      const long = await get<TaskDetails>('/api/task?run=finished&task=long')
      const steps = await lines<StepLine>(`/api/steps?run=finished&task=long&start=${long.attempts.at(-1)!.start}`)
      expect(steps).toHaveLength(20)
      const hits = await lines<{ kind: string; hit?: { place: string } }>('/api/search?run=finished&text=hello%201')
      expect(hits.flatMap(({ hit }) => hit?.place ?? [])).toContain('step')
      expect(await get('/api/run?run=killed')).toMatchObject({ overview: { status: 'died' } })
    },
  )

  it('keep the files of SQLite beside them while somebody else has them open', () => {
    const { own } = storeFolder()
    copyFileSync(join(import.meta.dirname, '../store/fixtures/seventh/store.sqlite'), own('sent'))
    const log = `${own('sent')}-wal`
    const look = () => {
      using db = openForReading(own('sent'))
      return db.prepare('SELECT run FROM _run WHERE script = ?').all('changed').length
    }
    {
      using writer = new DatabaseSync(own('sent'))
      writer.prepare('SELECT 1 FROM _run').get()
      expect(statSync(log).size).toBe(0)
      expect(look()).toBe(0)
      expect(existsSync(log)).toBe(true)
      writer.exec(`UPDATE _run SET script = 'changed'`)
      expect(look()).toBeGreaterThan(0)
      expect(statSync(log).size).toBeGreaterThan(0)
    }
    expect(look()).toBeGreaterThan(0)
    expect(existsSync(log)).toBe(false)
  })

  it('damaged rows and files are one error, and do not hide the others', async () => {
    const { store, own } = storeFolder()
    for (const id of ['bad', 'good'])
      await Runners.runTask([shown.task({ text: id }, { id })], { store, runId: id, workerNum: 1 })
    {
      using db = new DatabaseSync(join(store, 'store.sqlite'))
      db.exec(`UPDATE _attempts SET run_us = 'long' WHERE task IN (SELECT task FROM _tasks WHERE id = 'bad')`)
      db.exec(`UPDATE _steps SET record = '{' WHERE key IN (SELECT min(key) FROM _steps)`)
    }
    writeFileSync(own('not-a-store'), 'hello')
    await Runners.runTask([shown.task({ text: 'x' })], { store: own('cut'), runId: 'cut', workerNum: 1 })
    const whole = readFileSync(own('cut'))
    writeFileSync(own('cut'), whole.subarray(0, whole.length / 2))
    const { get, error, lines } = await served(store)
    const { runs } = await get<RunList>('/api/runs')
    expect(runs).toContainEqual(expect.objectContaining({ runId: 'good', status: 'finished' }))
    for (const runId of ['not-a-store', 'cut'])
      expect(runs).toContainEqual({ runId, problem: expect.stringContaining(`${runId}.sqlite`) })
    expect(await error('/api/tasks?run=bad')).toMatchObject({ code: 'STORE_CORRUPT' })
    expect(await error('/api/task?run=bad&task=bad')).toMatchObject({ status: 500, code: 'STORE_CORRUPT' })
    expect(await error('/api/search?run=bad&text=%7B')).toMatchObject({ code: 'STORE_CORRUPT' })
    expect(await error('/api/run?run=not-a-store')).toMatchObject({ status: 500, code: 'NOT_A_STORE' })
    expect(await error('/api/run?run=cut')).toMatchObject({ status: 500, code: 'STORE_CORRUPT' })
    expect(await lines<TaskChunk>('/api/tasks?run=good')).toMatchObject([{ id: ['good'] }])
  })
})
